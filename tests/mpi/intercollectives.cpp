// Compares every collective between two groups of different sizes with a plain reference: rooted in either group, blocking and
// non-blocking.
#include <algorithm>
#include <vector>

#include "blocking_or_not.h"

namespace {

MPI_Comm inter;
int side, rank, local, remote;  // side is 0 or 1; rank is in this side's group

int element(int s, int r, int i) {
    uint64_t state = test_seed + s * 77777 + r * 1013 + i * 31;
    return (int)(next_random(&state) % 1000);
}

/// Returns this rank's root argument for the root `root` of side `root_side`.
int root_argument(int root_side, int root) {
    if (side != root_side) return root;
    return rank == root ? MPI_ROOT : MPI_PROC_NULL;
}

void rooted(int root_side, int root, int n) {
    int argument = root_argument(root_side, root), others = root_side == side ? remote : local;
    bool is_root = argument == MPI_ROOT, far = side != root_side;
    std::vector<int> data(n, -1), all((size_t)n * others, -1);
    for (int i = 0; i < n && is_root; i++) data[i] = element(root_side, root, i);
    call([&] { return MPI_Bcast(data.data(), n, MPI_INT, argument, inter); },
         [&](MPI_Request* r) { return MPI_Ibcast(data.data(), n, MPI_INT, argument, inter, r); });
    for (int i = 0; i < n && far; i++)
        CHECK(data[i] == element(root_side, root, i), "Bcast of %d from %d:%d: element %d is %d", n, root_side, root, i,
              data[i]);

    for (int i = 0; i < n; i++) data[i] = element(side, rank, i);
    call([&] { return MPI_Gather(data.data(), n, MPI_INT, all.data(), n, MPI_INT, argument, inter); },
         [&](MPI_Request* r) { return MPI_Igather(data.data(), n, MPI_INT, all.data(), n, MPI_INT, argument, inter, r); });
    for (int r = 0; r < others && is_root; r++)
        for (int i = 0; i < n; i++) EXPECT_INT(all[(size_t)r * n + i], element(!side, r, i));

    std::vector<int> counts(others), where(others);
    int total = 0;
    for (int r = 0; r < others; r++) counts[r] = n / (r + 1), where[r] = total, total += counts[r] + 1;
    std::vector<int> vector(total, -1);
    int mine = n / (rank + 1);
    call(
        [&] {
            return MPI_Gatherv(data.data(), mine, MPI_INT, vector.data(), counts.data(), where.data(), MPI_INT, argument,
                               inter);
        },
        [&](MPI_Request* r) {
            return MPI_Igatherv(data.data(), mine, MPI_INT, vector.data(), counts.data(), where.data(), MPI_INT, argument,
                                inter, r);
        });
    for (int r = 0; r < others && is_root; r++)
        for (int i = 0; i < counts[r]; i++) EXPECT_INT(vector[where[r] + i], element(!side, r, i));

    for (int r = 0; r < others && is_root; r++)
        for (int i = 0; i < n; i++) all[(size_t)r * n + i] = element(side, r + 50, i);
    std::fill(data.begin(), data.end(), -1);
    call([&] { return MPI_Scatter(all.data(), n, MPI_INT, data.data(), n, MPI_INT, argument, inter); },
         [&](MPI_Request* r) { return MPI_Iscatter(all.data(), n, MPI_INT, data.data(), n, MPI_INT, argument, inter, r); });
    for (int i = 0; i < n && far; i++) EXPECT_INT(data[i], element(!side, rank + 50, i));

    for (int r = 0; r < others && is_root; r++)
        for (int i = 0; i < counts[r]; i++) vector[where[r] + i] = element(side, r + 60, i);
    std::fill(data.begin(), data.end(), -1);
    call(
        [&] {
            return MPI_Scatterv(vector.data(), counts.data(), where.data(), MPI_INT, data.data(), mine, MPI_INT, argument,
                                inter);
        },
        [&](MPI_Request* r) {
            return MPI_Iscatterv(vector.data(), counts.data(), where.data(), MPI_INT, data.data(), mine, MPI_INT, argument,
                                 inter, r);
        });
    for (int i = 0; i < mine && far; i++) EXPECT_INT(data[i], element(!side, rank + 60, i));

    for (int i = 0; i < n; i++) data[i] = element(side, rank, i);
    std::vector<int> result(n, -1);
    call([&] { return MPI_Reduce(data.data(), result.data(), n, MPI_INT, MPI_SUM, argument, inter); },
         [&](MPI_Request* r) { return MPI_Ireduce(data.data(), result.data(), n, MPI_INT, MPI_SUM, argument, inter, r); });
    for (int i = 0; i < n && is_root; i++) {
        int sum = 0;
        for (int r = 0; r < others; r++) sum += element(!side, r, i);
        EXPECT_INT(result[i], sum);
    }
}

void symmetric(int n) {
    int m = n + 1;  // the sides contribute different amounts where MPI allows it
    int mine = side ? n : m, theirs = side ? m : n;
    std::vector<int> data(std::max(mine, n * remote) + 1), in((size_t)std::max(theirs, n) * remote, -1);
    for (int i = 0; i < mine; i++) data[i] = element(side, rank, i);
    call([&] { return MPI_Allgather(data.data(), mine, MPI_INT, in.data(), theirs, MPI_INT, inter); },
         [&](MPI_Request* r) { return MPI_Iallgather(data.data(), mine, MPI_INT, in.data(), theirs, MPI_INT, inter, r); });
    for (int r = 0; r < remote; r++)
        for (int i = 0; i < theirs; i++) EXPECT_INT(in[(size_t)r * theirs + i], element(!side, r, i));

    std::vector<int> counts(remote), where(remote);
    int total = 0;
    for (int r = 0; r < remote; r++) counts[r] = n / (r + 1), where[r] = total, total += counts[r] + 2;
    std::vector<int> vector(total, -1);
    call(
        [&] {
            return MPI_Allgatherv(data.data(), n / (rank + 1), MPI_INT, vector.data(), counts.data(), where.data(), MPI_INT,
                                  inter);
        },
        [&](MPI_Request* r) {
            return MPI_Iallgatherv(data.data(), n / (rank + 1), MPI_INT, vector.data(), counts.data(), where.data(), MPI_INT,
                                   inter, r);
        });
    for (int r = 0; r < remote; r++)
        for (int i = 0; i < counts[r]; i++) EXPECT_INT(vector[where[r] + i], element(!side, r, i));

    for (int r = 0; r < remote; r++)
        for (int i = 0; i < n; i++) data[(size_t)r * n + i] = element(side, rank * 64 + r, i);
    call([&] { return MPI_Alltoall(data.data(), n, MPI_INT, in.data(), n, MPI_INT, inter); },
         [&](MPI_Request* r) { return MPI_Ialltoall(data.data(), n, MPI_INT, in.data(), n, MPI_INT, inter, r); });
    for (int r = 0; r < remote; r++)
        for (int i = 0; i < n; i++) EXPECT_INT(in[(size_t)r * n + i], element(!side, r * 64 + rank, i));

    std::vector<int> sends(remote), send_where(remote), receives(remote), receive_where(remote), bytes(remote),
        receive_bytes(remote);
    for (int r = 0; r < remote; r++) {
        sends[r] = (side ? rank + r : r + rank) % (n + 1);
        receives[r] = (rank + r) % (n + 1);
        send_where[r] = receive_where[r] = r * n;
        bytes[r] = receive_bytes[r] = r * n * (int)sizeof(int);
    }
    std::vector<MPI_Datatype> types(remote, MPI_INT);
    for (int form = 0; form < 2; form++) {
        std::fill(in.begin(), in.end(), -1);
        if (form == 0)
            call(
                [&] {
                    return MPI_Alltoallv(data.data(), sends.data(), send_where.data(), MPI_INT, in.data(), receives.data(),
                                         receive_where.data(), MPI_INT, inter);
                },
                [&](MPI_Request* r) {
                    return MPI_Ialltoallv(data.data(), sends.data(), send_where.data(), MPI_INT, in.data(), receives.data(),
                                          receive_where.data(), MPI_INT, inter, r);
                });
        else
            call(
                [&] {
                    return MPI_Alltoallw(data.data(), sends.data(), bytes.data(), types.data(), in.data(), receives.data(),
                                         receive_bytes.data(), types.data(), inter);
                },
                [&](MPI_Request* r) {
                    return MPI_Ialltoallw(data.data(), sends.data(), bytes.data(), types.data(), in.data(), receives.data(),
                                          receive_bytes.data(), types.data(), inter, r);
                });
        for (int r = 0; r < remote; r++)
            for (int i = 0; i < receives[r]; i++) EXPECT_INT(in[(size_t)r * n + i], element(!side, r * 64 + rank, i));
    }
}

void reductions(int n) {
    std::vector<int> data(n), result(n, -1);
    for (int i = 0; i < n; i++) data[i] = element(side, rank, i);
    call([&] { return MPI_Allreduce(data.data(), result.data(), n, MPI_INT, MPI_SUM, inter); },
         [&](MPI_Request* r) { return MPI_Iallreduce(data.data(), result.data(), n, MPI_INT, MPI_SUM, inter, r); });
    auto remote_sum = [&](int i) {
        int sum = 0;
        for (int r = 0; r < remote; r++) sum += element(!side, r, i);
        return sum;
    };
    for (int i = 0; i < n; i++) EXPECT_INT(result[i], remote_sum(i));

    // Both sides reduce vectors of the same total length: a multiple of both sizes.
    int total = n * local * remote, block = total / local;
    data.resize(total);
    result.assign(total, -1);
    for (int i = 0; i < total; i++) data[i] = element(side, rank, i);
    call([&] { return MPI_Reduce_scatter_block(data.data(), result.data(), block, MPI_INT, MPI_SUM, inter); },
         [&](MPI_Request* r) {
             return MPI_Ireduce_scatter_block(data.data(), result.data(), block, MPI_INT, MPI_SUM, inter, r);
         });
    for (int i = 0; i < block; i++) EXPECT_INT(result[i], remote_sum(rank * block + i));

    std::vector<int> counts(local, 0);
    counts[0] = total - (local - 1) * (block / 2);
    for (int r = 1; r < local; r++) counts[r] = block / 2;
    int offset = 0;
    for (int r = 0; r < rank; r++) offset += counts[r];
    result.assign(total, -1);
    call([&] { return MPI_Reduce_scatter(data.data(), result.data(), counts.data(), MPI_INT, MPI_SUM, inter); },
         [&](MPI_Request* r) {
             return MPI_Ireduce_scatter(data.data(), result.data(), counts.data(), MPI_INT, MPI_SUM, inter, r);
         });
    for (int i = 0; i < counts[rank]; i++) EXPECT_INT(result[i], remote_sum(offset + i));
}

}  // namespace

int main(int argc, char** argv) {
    int world_rank, world_size;
    OK(MPI_Init(&argc, &argv));
    start_seed(5);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &world_rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &world_size));
    CHECK(world_size >= 2, "needs two ranks");
    int first = world_size / 3 > 0 ? world_size / 3 : 1;
    side = world_rank >= first;
    MPI_Comm half;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, world_rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, side ? 0 : first, 12, &inter));
    OK(MPI_Comm_rank(inter, &rank));
    OK(MPI_Comm_size(inter, &local));
    OK(MPI_Comm_remote_size(inter, &remote));
    EXPECT_INT(local + remote, world_size);
    for (int n : {1, 10, 700, 6000}) {
        for (int mode = 0; mode < 2; mode++) {
            non_blocking = mode;
            for (int root_side = 0; root_side < 2; root_side++)
                rooted(root_side, (root_side == side ? local : remote) - 1, n), rooted(root_side, 0, n);
            symmetric(n);
            reductions(n > 700 ? 20 : n > 10 ? 15 : n);
            call([&] { return MPI_Barrier(inter); }, [&](MPI_Request* r) { return MPI_Ibarrier(inter, r); });
        }
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
    OK(MPI_Finalize());
    return 0;
}
