// Children that spawn: a chain of three generations of children, several generations alive at once, and messages between grandparent and grandchild
// through merged communicators.
#include "dynamic.h"

int main(int argc, char** argv) {
    MPI_Comm parent, inter, merged, all;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    int depth = argc > 1 ? atoi(argv[1]) : 0, rank, size;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    CHECK((depth == 0) == (parent == MPI_COMM_NULL), "depth %d", depth);
    // First a chain: each generation reports the number of generations below it.
    int below = 0;
    if (depth < 3) {
        char word[16];
        snprintf(word, sizeof word, "%d", depth + 1);
        inter = spawn_self(word, 2, MPI_COMM_WORLD);
        int got = -1;
        OK(MPI_Bcast(&got, 1, MPI_INT, 0, inter));
        EXPECT_INT(got, 2 - depth);
        below = got + 1;
    }
    if (depth > 0) OK(MPI_Bcast(&below, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, parent));

    // Generations 0 and 1 merge, then 1 and 2. An inter-communicator over the second merged communicator joins generation 0 with generation
    // 2.
    MPI_Comm link = MPI_COMM_NULL;
    if (depth == 1) OK(MPI_Intercomm_merge(inter, 0, &link));
    if (depth == 2) OK(MPI_Intercomm_merge(parent, 1, &link));
    if (depth == 0 || depth == 1) {
        OK(MPI_Intercomm_merge(depth == 0 ? inter : parent, depth, &merged));
        int merged_rank, sum = 1, parents = 0, zero_size = depth == 0 ? size : 0;
        OK(MPI_Comm_rank(merged, &merged_rank));
        OK(MPI_Allreduce(&zero_size, &parents, 1, MPI_INT, MPI_MAX, merged));
        MPI_Comm bridge;
        if (depth == 0)  // only generation 1's rank 0 knows the remote leader
            OK(MPI_Intercomm_create(merged, parents, MPI_COMM_NULL, -1, 5, &bridge));
        else
            OK(MPI_Intercomm_create(merged, parents, link, 2, 5, &bridge));
        OK(MPI_Intercomm_merge(bridge, 0, &all));
        OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all));
        EXPECT_INT(sum, parents + 4);
        OK(MPI_Comm_disconnect(&bridge));
        OK(MPI_Comm_disconnect(&all));
        OK(MPI_Comm_disconnect(&merged));
    } else if (depth == 2) {
        MPI_Comm bridge;
        int sum = 1, n;
        OK(MPI_Intercomm_create(MPI_COMM_WORLD, 0, link, 0, 5, &bridge));
        OK(MPI_Intercomm_merge(bridge, 1, &all));
        OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, all));
        OK(MPI_Comm_size(all, &n));
        EXPECT_INT(sum, n);
        OK(MPI_Comm_disconnect(&bridge));
        OK(MPI_Comm_disconnect(&all));
    }
    if (link != MPI_COMM_NULL) OK(MPI_Comm_disconnect(&link));
    if (depth < 3) OK(MPI_Comm_disconnect(&inter));
    if (depth > 0) OK(MPI_Comm_disconnect(&parent));
    OK(MPI_Finalize());
    return 0;
}
