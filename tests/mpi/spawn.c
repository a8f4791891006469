// Tests MPI_Comm_spawn of one and of several children by one parent and by all: sizes, ranks, names, arguments, messages both ways,
// collectives over the inter-communicator, merge, many spawns in a row.
#include "dynamic.h"

static void child(int argc, char** argv) {
    MPI_Comm parent;
    int rank, size, remote, flag;
    OK(MPI_Comm_get_parent(&parent));
    CHECK(parent != MPI_COMM_NULL, "a child without a parent");
    CHECK(argc == 2 && strcmp(argv[1], "child") == 0, "arguments: %d", argc);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_test_inter(parent, &flag));
    EXPECT_INT(flag, 1);
    int parent_rank, parent_size;
    OK(MPI_Comm_rank(parent, &parent_rank));
    OK(MPI_Comm_size(parent, &parent_size));
    OK(MPI_Comm_remote_size(parent, &remote));
    EXPECT_INT(parent_rank, rank);
    EXPECT_INT(parent_size, size);
    MPI_Comm again;
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == parent, "get_parent gives the same handle");

    int sum = rank;  // checks that the children's MPI_COMM_WORLD works
    OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    EXPECT_INT(sum, size * (size - 1) / 2);
    for (int r = 0; r < remote; r++) {
        int value = 1000 * r + rank, got;
        OK(MPI_Send(&value, 1, MPI_INT, r, 1, parent));
        OK(MPI_Recv(&got, 1, MPI_INT, r, 2, parent, MPI_STATUS_IGNORE));
        EXPECT_INT(got, 5000 + 100 * r + rank);
    }
    int one = 1, total;
    OK(MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, parent));
    EXPECT_INT(total, remote);
    int word = -1;
    OK(MPI_Bcast(&word, 1, MPI_INT, 0, parent));
    EXPECT_INT(word, 4242);
    MPI_Comm merged;
    OK(MPI_Intercomm_merge(parent, 1, &merged));
    int merged_rank, merged_size;
    OK(MPI_Comm_rank(merged, &merged_rank));
    OK(MPI_Comm_size(merged, &merged_size));
    EXPECT_INT(merged_rank, remote + rank);
    EXPECT_INT(merged_size, remote + size);
    for (int i = 0; i < 20; i++) {
        int value = merged_rank;
        OK(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, merged));
        EXPECT_INT(value, merged_size * (merged_size - 1) / 2);
    }
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&parent));
    CHECK(parent == MPI_COMM_NULL);
    OK(MPI_Comm_get_parent(&again));
    CHECK(again == MPI_COMM_NULL, "after disconnect there is no parent");
}

static void parents(MPI_Comm comm, int children) {
    int rank, size, remote;
    OK(MPI_Comm_rank(comm, &rank));
    OK(MPI_Comm_size(comm, &size));
    MPI_Comm inter = spawn_self("child", children, comm);
    OK(MPI_Comm_remote_size(inter, &remote));
    EXPECT_INT(remote, children);
    for (int c = 0; c < children; c++) {
        int value, reply = 5000 + 100 * rank + c;
        MPI_Status status;
        OK(MPI_Recv(&value, 1, MPI_INT, c, MPI_ANY_TAG, inter, &status));
        EXPECT_INT(value, 1000 * rank + c);
        EXPECT_INT(status.MPI_SOURCE, c);
        OK(MPI_Send(&reply, 1, MPI_INT, c, 2, inter));
    }
    int one = 1, total, word = 4242;
    OK(MPI_Allreduce(&one, &total, 1, MPI_INT, MPI_SUM, inter));
    EXPECT_INT(total, children);
    OK(MPI_Bcast(&word, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, inter));
    MPI_Comm merged;
    OK(MPI_Intercomm_merge(inter, 0, &merged));
    int merged_rank, merged_size;
    OK(MPI_Comm_rank(merged, &merged_rank));
    OK(MPI_Comm_size(merged, &merged_size));
    EXPECT_INT(merged_rank, rank);
    for (int i = 0; i < 20; i++) {
        int value = merged_rank;
        OK(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, merged));
        EXPECT_INT(value, merged_size * (merged_size - 1) / 2);
    }
    OK(MPI_Comm_free(&merged));
    OK(MPI_Comm_disconnect(&inter));
    CHECK(inter == MPI_COMM_NULL);
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    if (parent != MPI_COMM_NULL) {
        child(argc, argv);
    } else {
        parents(MPI_COMM_WORLD, 1);
        parents(MPI_COMM_WORLD, 4);
        parents(MPI_COMM_SELF, 1);  // every rank spawns a child at once
        for (int i = 0; i < 3; i++) parents(MPI_COMM_WORLD, 2);
    }
    OK(MPI_Finalize());
    return 0;
}
