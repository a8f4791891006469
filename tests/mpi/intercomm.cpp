// Tests inter-communicators: create, accessors, messages, dup, split, merge in both orders, groups, attributes.
#include <vector>

#include "check.h"

namespace {

int world_rank, world_size;

void exchange(MPI_Comm inter) {
    int rank, local, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    std::vector<MPI_Request> requests(2 * remote);
    std::vector<int> in(remote, -1);
    for (int r = 0; r < remote; r++) {
        OK(MPI_Irecv(&in[r], 1, MPI_INT, r, 3, inter, &requests[r]));
        OK(MPI_Isend(&rank, 1, MPI_INT, r, 3, inter, &requests[remote + r]));
    }
    OK(MPI_Waitall(2 * remote, requests.data(), MPI_STATUSES_IGNORE));
    for (int r = 0; r < remote; r++) EXPECT_INT(in[r], r);
    // Wildcards: the source is a rank of the remote group.
    MPI_Request send;
    if (remote == local) {
        OK(MPI_Isend(&rank, 1, MPI_INT, rank, 4, inter, &send));
        MPI_Status status;
        int value;
        OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, inter, &status));
        EXPECT_INT(status.MPI_SOURCE, rank);
        EXPECT_INT(value, rank);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    }
}

void merges(MPI_Comm inter, int side, int first) {
    for (int high_side = 0; high_side < 2; high_side++) {
        MPI_Comm merged;
        OK(MPI_Intercomm_merge(inter, side == high_side, &merged));
        int rank, size, flag;
        OK(MPI_Comm_rank(merged, &rank));
        OK(MPI_Comm_size(merged, &size));
        OK(MPI_Comm_test_inter(merged, &flag));
        EXPECT_INT(flag, 0);
        EXPECT_INT(size, world_size);
        int wanted = high_side == 1 ? world_rank : side == 1 ? world_rank - first : world_size - first + world_rank;
        EXPECT_INT(rank, wanted);
        int sum = world_rank;
        OK(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, merged));
        EXPECT_INT(sum, world_size * (world_size - 1) / 2);
        OK(MPI_Comm_free(&merged));
    }
    MPI_Comm merged;  // both sides pass the same `high`: either group may be first
    OK(MPI_Intercomm_merge(inter, 0, &merged));
    exchange(inter);
    OK(MPI_Barrier(merged));
    OK(MPI_Comm_free(&merged));
}

void splits(MPI_Comm inter, int side) {
    MPI_Comm part;
    int rank, local, remote;
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    OK(MPI_Comm_split(inter, rank % 2, -rank, &part));
    int have_remote = rank % 2 == 0 || remote > 1;
    if (!have_remote) {
        CHECK(part == MPI_COMM_NULL, "the remote group has no process of this color");
        return;
    }
    int r, n, m, flag;
    OK(MPI_Comm_test_inter(part, &flag));
    EXPECT_INT(flag, 1);
    OK(MPI_Comm_rank(part, &r));
    OK(MPI_Comm_size(part, &n));
    OK(MPI_Comm_remote_size(part, &m));
    EXPECT_INT(n, (local - rank % 2 + 1) / 2);
    EXPECT_INT(m, (remote - rank % 2 + 1) / 2);
    EXPECT_INT(r, n - 1 - rank / 2);
    exchange(part);
    OK(MPI_Comm_free(&part));
    (void)side;
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    CHECK(world_size >= 2, "needs two ranks");
    for (int first : {1, world_size / 2, world_size - 1}) {
        int side = world_rank >= first, flag, result;
        MPI_Comm half, peer, inter, dup;
        OK(MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &half));
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &peer));
        OK(MPI_Intercomm_create(half, 0, peer, side ? 0 : first, 99, &inter));
        OK(MPI_Comm_free(&peer));
        OK(MPI_Comm_test_inter(inter, &flag));
        EXPECT_INT(flag, 1);
        MPI_Group local_group, remote_group, half_group;
        int n;
        OK(MPI_Comm_group(inter, &local_group));
        OK(MPI_Comm_remote_group(inter, &remote_group));
        OK(MPI_Comm_group(half, &half_group));
        OK(MPI_Group_compare(local_group, half_group, &result));
        EXPECT_INT(result, MPI_IDENT);
        OK(MPI_Group_size(remote_group, &n));
        EXPECT_INT(n, side ? first : world_size - first);
        OK(MPI_Group_free(&local_group));
        OK(MPI_Group_free(&remote_group));
        OK(MPI_Group_free(&half_group));
        exchange(inter);
        OK(MPI_Comm_dup(inter, &dup));
        OK(MPI_Comm_compare(inter, dup, &result));
        EXPECT_INT(result, MPI_CONGRUENT);
        OK(MPI_Comm_compare(inter, half, &result));
        EXPECT_INT(result, MPI_UNEQUAL);
        exchange(dup);
        merges(dup, side, first);
        splits(inter, side);
        OK(MPI_Comm_free(&dup));
        OK(MPI_Comm_free(&inter));
        OK(MPI_Comm_free(&half));
    }
    OK(MPI_Finalize());
    return 0;
}
