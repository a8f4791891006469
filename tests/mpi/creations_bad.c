// One member passes wrong arguments to a call that creates a communicator: all members must return an error of the same class, none hangs,
// and the next call succeeds.
#include "check.h"

static int rank, size;
static MPI_Comm home, made;

static void topologies(int bad) {
    const int dims[] = {size}, none[] = {0}, beyond[] = {size + 1}, periods[] = {0}, remain[] = {1};
    const int index[] = {1}, edges[] = {0}, far_edges[] = {size};
    EXPECT_ERROR(MPI_Cart_create(home, 1, bad ? none : dims, periods, 0, &made), MPI_ERR_DIMS);
    EXPECT_ERROR(MPI_Cart_create(home, bad ? -1 : 0, dims, periods, 0, &made),
                 MPI_ERR_DIMS);  // the other members pass 0 dimensions, which is valid
    EXPECT_ERROR(MPI_Cart_create(home, 1, bad ? beyond : dims, periods, 0, &made), MPI_ERR_TOPOLOGY);
    EXPECT_ERROR(MPI_Cart_create(home, 1, dims, bad ? NULL : periods, 0, &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Cart_create(home, 1, dims, periods, 0, bad ? NULL : &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Graph_create(home, 1, index, bad ? far_edges : edges, 0, &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Graph_create(home, 1, index, edges, 0, bad ? NULL : &made), MPI_ERR_ARG);
    CHECK(made == MPI_COMM_NULL);
    MPI_Comm grid;
    OK(MPI_Cart_create(home, 1, dims, periods, 0, &grid));
    OK(MPI_Comm_set_errhandler(grid, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Cart_sub(grid, bad ? NULL : remain, &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Cart_sub(grid, remain, bad ? NULL : &made), MPI_ERR_ARG);
    OK(MPI_Comm_free(&grid));
}

/// Calls spawn, accept and connect; the arguments are wrong on the rank where `bad` is set. Each call must return its error at once,
/// without a child to start or a peer to wait for.
static void with_others(int bad) {
    char port[MPI_MAX_PORT_NAME], program[] = "true";
    OK(MPI_Open_port(MPI_INFO_NULL, port));
    EXPECT_ERROR(MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, bad ? size : 0, home, &made, MPI_ERRCODES_IGNORE),
                 MPI_ERR_ROOT);
    EXPECT_ERROR(MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, home, bad ? NULL : &made, MPI_ERRCODES_IGNORE),
                 MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_accept(port, MPI_INFO_NULL, bad ? -1 : 0, home, &made), MPI_ERR_ROOT);
    EXPECT_ERROR(MPI_Comm_connect(port, MPI_INFO_NULL, 0, home, bad ? NULL : &made), MPI_ERR_ARG);
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Close_port(port));
}

static MPI_Info freed_info(void) {
    MPI_Info info;
    OK(MPI_Info_create(&info));
    const MPI_Info freed = info;
    OK(MPI_Info_free(&info));
    return freed;
}

static void from_one(int bad) {
    MPI_Group all;
    MPI_Request request;
    const MPI_Info freed = freed_info();
    OK(MPI_Comm_group(home, &all));
    EXPECT_ERROR(MPI_Comm_dup(home, bad ? NULL : &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_dup_with_info(home, bad ? freed : MPI_INFO_NULL, &made), MPI_ERR_INFO);
    OK(MPI_Comm_idup_with_info(home, bad ? freed : MPI_INFO_NULL, &made, &request));
    EXPECT_ERROR(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_ERR_INFO);
    EXPECT_ERROR(MPI_Comm_split(home, bad ? -5 : 0, 0, &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_split(home, 0, 0, bad ? NULL : &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_split_type(home, MPI_COMM_TYPE_SHARED, 0, bad ? freed : MPI_INFO_NULL, &made), MPI_ERR_INFO);
    EXPECT_ERROR(MPI_Comm_create(home, bad ? MPI_GROUP_NULL : all, &made), MPI_ERR_GROUP);
    EXPECT_ERROR(MPI_Comm_create(home, all, bad ? NULL : &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_create_group(home, all, 3, bad ? NULL : &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_create_from_group(all, "one", bad ? freed : MPI_INFO_NULL, MPI_ERRORS_RETURN, &made), MPI_ERR_INFO);
    EXPECT_ERROR(MPI_Comm_create_from_group(all, "one", MPI_INFO_NULL, MPI_ERRORS_RETURN, bad ? NULL : &made), MPI_ERR_ARG);
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Group_free(&all));
}

/// Whether this rank is in the second half of `home`; the world ranks of its half's leader and of the other half's leader.
static int second, leader, other;

/// An error in one half must reach the other half.
static void of_two(int culprit) {
    const int bad = rank == culprit, leads = rank == leader;
    MPI_Comm half, between;
    OK(MPI_Comm_split(home, second, 0, &half));
    OK(MPI_Comm_set_errhandler(half, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Intercomm_create(half, 0, home, other, 5, bad ? NULL : &made), MPI_ERR_ARG);
    if (culprit != 0 && culprit != size / 2)  // a leader with a wrong local_leader does not know that it is the leader
        EXPECT_ERROR(MPI_Intercomm_create(half, bad ? -1 : 0, home, other, 5, &made), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Intercomm_create(half, 0, home, leads ? size : other, 5, &made), MPI_ERR_RANK);
    CHECK(made == MPI_COMM_NULL);
    // On ranks other than the leaders the peer communicator, the remote leader and the tag are not significant.
    OK(MPI_Intercomm_create(half, 0, leads ? home : MPI_COMM_NULL, leads ? other : -7, leads ? 5 : -9, &between));
    OK(MPI_Comm_set_errhandler(between, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Intercomm_merge(between, second, bad ? NULL : &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_split(between, bad ? -5 : 0, 0, &made), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Comm_dup(between, bad ? NULL : &made), MPI_ERR_ARG);
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Comm_free(&between));
    OK(MPI_Comm_free(&half));
}

static void of_two_groups(int culprit) {
    const int bad = rank == culprit, leads = rank == leader;
    MPI_Group all, groups[2];
    OK(MPI_Comm_group(home, &all));
    OK(MPI_Group_range_incl(all, 1, (int[1][3]){{0, size / 2 - 1, 1}}, &groups[0]));
    OK(MPI_Group_range_incl(all, 1, (int[1][3]){{size / 2, size - 1, 1}}, &groups[1]));
    const MPI_Group mine = groups[second], theirs = groups[!second];
    EXPECT_ERROR(
        MPI_Intercomm_create_from_groups(mine, 0, theirs, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, bad ? NULL : &made),
        MPI_ERR_ARG);
    if (culprit != 0 && culprit != size / 2)
        EXPECT_ERROR(
            MPI_Intercomm_create_from_groups(mine, bad ? -1 : 0, theirs, 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
            MPI_ERR_RANK);
    EXPECT_ERROR(
        MPI_Intercomm_create_from_groups(mine, 0, theirs, leads ? size : 0, "two", MPI_INFO_NULL, MPI_ERRORS_RETURN, &made),
        MPI_ERR_RANK);
    CHECK(made == MPI_COMM_NULL);
    OK(MPI_Intercomm_create_from_groups(mine, 0, leads ? theirs : MPI_GROUP_NULL, leads ? 0 : -7, "two", MPI_INFO_NULL,
                                        MPI_ERRORS_RETURN, &made));
    OK(MPI_Comm_free(&made));
    for (int i = 0; i < 2; i++) OK(MPI_Group_free(&groups[i]));
    OK(MPI_Group_free(&all));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &home));
    OK(MPI_Comm_set_errhandler(home, MPI_ERRORS_RETURN));
    second = rank >= size / 2, leader = second ? size / 2 : 0, other = second ? 0 : size / 2;
    for (int culprit = 0; culprit < size; culprit++) {
        made = MPI_COMM_NULL;
        topologies(rank == culprit);
        from_one(rank == culprit);
        with_others(rank == culprit);
        if (size < 2) continue;
        of_two(culprit);
        of_two_groups(culprit);
    }
    OK(MPI_Comm_free(&home));
    OK(MPI_Finalize());
    return 0;
}
