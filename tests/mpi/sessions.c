// MPI sessions are opened and closed before and beside MPI_Init; communicators are created from their groups, without MPI_COMM_WORLD.
#include "check.h"

int main(int argc, char** argv) {
    int flag, n, len, me, size, sum;
    char name[100];
    for (int round = 0; round < 3; round++) {
        MPI_Session s, s2;
        MPI_Info info;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
        MPI_Initialized(&flag);
        CHECK(!flag);
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s2);
        MPI_Session_get_num_psets(s, MPI_INFO_NULL, &n);
        CHECK(n >= 2);
        len = 0;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &len, NULL);
        CHECK(len == 12);
        len = sizeof name;
        MPI_Session_get_nth_pset(s, MPI_INFO_NULL, 0, &len, name);
        CHECK(!strcmp(name, "mpi://WORLD"));
        MPI_Session_get_pset_info(s, "mpi://WORLD", &info);
        MPI_Info_get_string(info, "mpi_size", &(int){0}, NULL, &flag);
        CHECK(flag);
        MPI_Info_free(&info);
        MPI_Group g;
        MPI_Group_from_session_pset(s, "mpi://WORLD", &g);
        MPI_Comm c, d;
        MPI_Comm_create_from_group(g, "org.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &c);
        MPI_Comm_rank(c, &me);
        MPI_Comm_size(c, &size);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, c);
        CHECK(sum == size * (size - 1) / 2);
        MPI_Comm_create_from_group(g, "org.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &d);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, d);
        CHECK(sum == size * (size - 1) / 2);
        MPI_Comm_free(&d);
        if (size > 1) {
            MPI_Group a, b;
            int range[1][3] = {{0, size - 1, 2}};
            MPI_Group_range_incl(g, 1, range, &a);
            MPI_Group_range_excl(g, 1, range, &b);
            MPI_Comm x, m;
            if (me % 2 == 0)
                MPI_Intercomm_create_from_groups(a, 0, b, 0, "x", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &x);
            else
                MPI_Intercomm_create_from_groups(b, 0, a, 0, "x", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &x);
            MPI_Comm_remote_size(x, &n);
            CHECK(n == (size + me % 2) / 2);
            MPI_Intercomm_merge(x, me % 2, &m);
            MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, m);
            CHECK(sum == size * (size - 1) / 2);
            MPI_Comm_free(&m);
            MPI_Comm_free(&x);
            MPI_Group_free(&a);
            MPI_Group_free(&b);
        }
        MPI_Group_free(&g);
        MPI_Comm_free(&c);
        MPI_Session_finalize(&s2);
        MPI_Session_finalize(&s);
        CHECK(s == MPI_SESSION_NULL);
    }
    MPI_Init(&argc, &argv);
    MPI_Session s;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &s);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    MPI_Session_finalize(&s);
    MPI_Finalized(&flag);
    CHECK(flag);
    return 0;
}
