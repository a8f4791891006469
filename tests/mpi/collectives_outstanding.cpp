// Runs many non-blocking collectives at a time on one communicator, of all kinds and lengths, mixed with blocking ones and completed in any
// order. The communicators are new, or are freed before the operations complete. Every result must be correct, and any call that makes
// progress must advance the operations.
#include <memory>
#include <vector>

#include "check.h"

namespace {

MPI_Comm comm;
int rank, size;

int element(uint64_t key, int r, int i) { return (int)((key * 31 + (uint64_t)r * 17 + (uint64_t)i) % 1000); }

int draw_count(uint64_t* state) {
    static const int kMost[] = {1, 14, 1000, 5000, 40000};
    return 1 + random_below(state, kMost[random_below(state, 5)]);
}

/// One operation in progress and its expected result.
struct Operation {
    MPI_Request request = MPI_REQUEST_NULL;
    std::vector<int> out, in, wanted;
    const char* name = "";

    Operation(uint64_t key, uint64_t* state) {
        const int count = draw_count(state), root = random_below(state, size), kind = random_below(state, 8);
        const auto of = [&](int r, int n) {
            std::vector<int> data(n);
            for (int i = 0; i < n; i++) data[i] = element(key, r, i);
            return data;
        };
        const auto sum = [&](bool here) {
            if (here)
                for (int i = 0; i < count; i++) {
                    wanted.push_back(0);
                    for (int r = 0; r < size; r++) wanted.back() += element(key, r, i);
                }
            in.resize(here ? count : 0);
        };
        const auto all_blocks = [&](bool here, int n) {
            for (int r = 0; here && r < size; r++)
                for (int i = 0; i < n; i++) wanted.push_back(element(key, r, i));
            in.resize(wanted.size());
        };
        switch (kind) {
            case 0:
                name = "Ibarrier";
                OK(MPI_Ibarrier(comm, &request));
                break;
            case 1:
                name = "Ibcast";
                wanted = of(root, count);
                in = rank == root ? wanted : std::vector<int>(count);
                OK(MPI_Ibcast(in.data(), count, MPI_INT, root, comm, &request));
                break;
            case 2:
                name = "Iallreduce";
                out = of(rank, count);
                sum(true);
                OK(MPI_Iallreduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, comm, &request));
                break;
            case 3:
                name = "Ireduce";
                out = of(rank, count);
                sum(rank == root);
                OK(MPI_Ireduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, root, comm, &request));
                break;
            case 4:
                name = "Igather";
                out = of(rank, count);
                all_blocks(rank == root, count);
                OK(MPI_Igather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, root, comm, &request));
                break;
            case 5:
                name = "Iscatter";
                if (rank == root)
                    for (int r = 0; r < size; r++)
                        for (int i = 0; i < count; i++) out.push_back(element(key, r, i));
                wanted = of(rank, count);
                in.resize(count);
                OK(MPI_Iscatter(out.data(), count, MPI_INT, in.data(), count, MPI_INT, root, comm, &request));
                break;
            case 6:
                name = "Iallgather";
                out = of(rank, count);
                all_blocks(true, count);
                OK(MPI_Iallgather(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm, &request));
                break;
            default:
                name = "Ialltoall";
                for (int r = 0; r < size; r++)
                    for (int i = 0; i < count; i++) out.push_back(element(key, rank, i));
                all_blocks(true, count);
                OK(MPI_Ialltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm, &request));
        }
    }
    void check() const {
        for (size_t i = 0; i < wanted.size(); i++)
            CHECK(in[i] == wanted[i], "%s: element %zu is %d, wanted %d", name, i, in[i], wanted[i]);
    }
};
using Operations = std::vector<std::unique_ptr<Operation>>;

void blocking(uint64_t key, uint64_t* state) {
    int value = element(key, rank, 0), sum = 0, wanted = 0;
    if (random_below(state, 3) == 0) {
        OK(MPI_Barrier(comm));
        return;
    }
    for (int r = 0; r < size; r++) wanted += element(key, r, 0);
    OK(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm));
    EXPECT_INT(sum, wanted);
}

/// Completes all operations in a random order and with random functions, different on each rank.
void complete(Operations& operations, uint64_t own) {
    std::vector<MPI_Request> requests;
    for (auto& each : operations) requests.push_back(each->request);
    const int n = (int)requests.size(), way = random_below(&own, 4);
    int left = n, index, flag;
    if (way == 0) OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
    if (way == 1)
        for (int i = n - 1; i >= 0; i--) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
    for (; way == 2 && left > 0; left--) OK(MPI_Waitany(n, requests.data(), &index, MPI_STATUS_IGNORE));
    while (way == 3 && left > 0) {
        OK(MPI_Testany(n, requests.data(), &index, &flag, MPI_STATUS_IGNORE));
        if (flag) left--;
    }
    for (auto& each : operations) each->check();
    operations.clear();
}

/// Starts and completes at most `few` operations.
void round_of(uint64_t key, uint64_t* state, int few) {
    Operations operations;
    const int n = 1 + random_below(state, few);
    for (int i = 0; i < n; i++) {
        operations.push_back(std::make_unique<Operation>(key * 100 + (uint64_t)i, state));
        if (random_below(state, 6) == 0) blocking(key * 100 + 50, state);
    }
    complete(operations, key * 1000 + (uint64_t)rank);
}

/// Starts more operations than there are lanes (slots in shared memory), so that later ones wait for earlier ones and blocking ones
/// overtake them. Some operations are too long for any lane.
void many_small(void) {
    const int n = 500;
    std::vector<int> out(n * 200), in(n * 200);
    std::vector<MPI_Request> requests(n);
    for (int round = 0; round < 3; round++) {
        const auto length = [&](int i) { return round == 1 && i % 50 == 7 ? 200 : 1 + i % 3; };
        const auto value = [&](int r, int i, int j) { return element((uint64_t)(round * n + i), r, j); };
        for (int i = 0; i < n; i++) {
            for (int j = 0; j < length(i); j++) out[i * 200 + j] = value(rank, i, j);
            if (i % 4 == 3)
                OK(MPI_Ibcast(rank == i % size ? &out[i * 200] : &in[i * 200], length(i), MPI_INT, i % size, comm,
                              &requests[i]));
            else
                OK(MPI_Iallreduce(&out[i * 200], &in[i * 200], length(i), MPI_INT, MPI_SUM, comm, &requests[i]));
            if (round == 2 && i % 100 == 50) OK(MPI_Barrier(comm));
        }
        for (int i = n - 1; i >= 0; i--) OK(MPI_Wait(&requests[i], MPI_STATUS_IGNORE));
        for (int i = 0; i < n; i++)
            for (int j = 0; j < length(i); j++) {
                int wanted = value(i % size, i, j);
                for (int r = 0; r < size && i % 4 != 3; r++) wanted = (r == 0 ? 0 : wanted) + value(r, i, j);
                if (i % 4 != 3 || rank != i % size) EXPECT_INT(in[i * 200 + j], wanted);
            }
    }
}

/// The first operations of a new communicator: `before` non-blocking ones, and a blocking one while they are in progress.
void new_communicators(uint64_t* state) {
    for (int before = 0; before < 5; before++) {
        OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        Operations operations;
        for (int i = 0; i < before; i++) operations.push_back(std::make_unique<Operation>((uint64_t)i, state));
        blocking(7, state);
        for (int i = 0; i < 3; i++) operations.push_back(std::make_unique<Operation>((uint64_t)i, state));
        MPI_Comm freed = comm;
        OK(MPI_Comm_free(&freed));
        complete(operations, (uint64_t)rank);
    }
    comm = MPI_COMM_WORLD;
}

/// The other ranks' operation must complete although this rank only makes calls on another communicator.
void any_progress_will_do(void) {
    MPI_Comm other;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &other));
    for (int round = 0; round < 5; round++) {
        const int count = 100000;
        std::vector<int> out(count, rank), in(count);
        MPI_Request request;
        OK(MPI_Iallreduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, other, &request));
        if (rank == 0) {
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
            for (int to = 1; to < size; to++) OK(MPI_Send(NULL, 0, MPI_INT, to, round, MPI_COMM_WORLD));
        } else if (round % 2) {
            OK(MPI_Recv(NULL, 0, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        } else {
            for (int there = 0; !there;) OK(MPI_Iprobe(0, round, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE));
            OK(MPI_Recv(NULL, 0, MPI_INT, 0, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        EXPECT_INT(in[count - 1], size * (size - 1) / 2);
    }
    OK(MPI_Comm_free(&other));
}

/// Rooted operations in both directions of an inter-communicator. A rank that neither sends nor receives must still count the operation
/// among those of the communicator. Some operations are longer than one fragment.
void between_groups(void) {
    MPI_Comm half, inter;
    const int side = rank >= (size + 1) / 2, leader = side ? 0 : (size + 1) / 2;
    OK(MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half));
    OK(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, leader, 0, &inter));
    const int first[2] = {0, (size + 1) / 2}, sizes[2] = {(size + 1) / 2, size / 2};
    for (int round = 0; round < 12; round++) {
        const int n = 1 + round % 6 * 2;
        std::vector<std::vector<int>> out(n), in(n), wanted(n);
        std::vector<MPI_Request> requests(n);
        for (int i = 0; i < n; i++) {
            const int count = i % 3 == 2 ? 40000 : 10 + i, from = (round + i) % 2, root = i % sizes[from];
            const uint64_t key = (uint64_t)(round * 100 + i);
            for (int j = 0; j < count; j++) out[i].push_back(element(key, rank, j));
            in[i].resize(count);
            const bool is_root = rank == first[from] + root;
            const int argument = side != from ? root : is_root ? MPI_ROOT : MPI_PROC_NULL;
            const auto sum_of = [&](int group) {
                for (int j = 0; j < count; j++) {
                    wanted[i].push_back(0);
                    for (int r = 0; r < sizes[group]; r++) wanted[i].back() += element(key, first[group] + r, j);
                }
            };
            switch ((round + i / 2) % 4) {
                case 0:
                    OK(MPI_Ibarrier(inter, &requests[i]));
                    break;
                case 1:
                    for (int j = 0; j < count && side != from; j++) wanted[i].push_back(element(key, first[from] + root, j));
                    OK(MPI_Ibcast(is_root ? out[i].data() : in[i].data(), count, MPI_INT, argument, inter, &requests[i]));
                    break;
                case 2:
                    if (is_root) sum_of(1 - from);
                    OK(MPI_Ireduce(out[i].data(), in[i].data(), count, MPI_INT, MPI_SUM, argument, inter, &requests[i]));
                    break;
                default:
                    sum_of(1 - side);
                    OK(MPI_Iallreduce(out[i].data(), in[i].data(), count, MPI_INT, MPI_SUM, inter, &requests[i]));
            }
        }
        if (round % 3 == 0) OK(MPI_Barrier(inter));
        OK(MPI_Waitall(n, requests.data(), MPI_STATUSES_IGNORE));
        for (int i = 0; i < n; i++)
            for (size_t j = 0; j < wanted[i].size(); j++)
                CHECK(in[i][j] == wanted[i][j], "round %d, operation %d of %d: element %zu is %d, wanted %d", round, i, n, j,
                      in[i][j], wanted[i][j]);
    }
    OK(MPI_Comm_free(&inter));
    OK(MPI_Comm_free(&half));
}

}  // namespace

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    uint64_t state = 42;
    comm = MPI_COMM_WORLD;
    for (uint64_t round = 0; round < 60; round++) round_of(round, &state, size > 7 ? 6 : 20);
    many_small();
    new_communicators(&state);
    any_progress_will_do();
    if (size > 1) between_groups();
    for (uint64_t round = 0; round < 10; round++) round_of(round, &state, 10);
    OK(MPI_Finalize());
    return 0;
}
