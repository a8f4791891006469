// Tests MPI_THREAD_MULTIPLE: threads with their own tags and with wildcards, threads with collectives on their own communicators, one
// thread that waits while others send, and completion of a request by another thread.
#include <atomic>
#include <thread>
#include <vector>

#include "check.h"

namespace {

int rank, size;
constexpr int kThreads = 4;

template <class Work>
void in_threads(int count, Work work) {
    std::vector<std::thread> threads;
    for (int t = 0; t < count; t++) threads.emplace_back([=] { work(t); });
    for (std::thread& thread : threads) thread.join();
}

void point_to_point() {
    in_threads(kThreads, [](int t) {
        int to = (rank + 1) % size, from = (rank + size - 1) % size;
        const int sizes[] = {4, 700, 9000, 120000};
        std::vector<char> out(120000), in(120000);
        for (int i = 0; i < (size > 4 ? 10 : 60); i++) {
            int n = sizes[(i + t) % 4];
            fill_bytes(out.data(), n, rank * 10 + t + i);
            MPI_Request request;
            OK(MPI_Isend(out.data(), n, MPI_BYTE, to, t, MPI_COMM_WORLD, &request));
            MPI_Status status;
            OK(MPI_Recv(in.data(), n, MPI_BYTE, from, t, MPI_COMM_WORLD, &status));
            CHECK(first_wrong_byte(in.data(), n, from * 10 + t + i) < 0, "thread %d round %d", t, i);
            OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        }
    });
}

void collectives() {
    std::vector<MPI_Comm> comms(kThreads);
    for (MPI_Comm& comm : comms) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    in_threads(kThreads, [&comms](int t) {
        for (int i = 0; i < (size > 4 ? 8 : 40); i++) {
            int mine = rank + t + i, sum = 0, root_value = rank == i % size ? 5000 + t + i : 0;
            OK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comms[t]));
            EXPECT_INT(sum, size * (size - 1) / 2 + size * (t + i));
            OK(MPI_Bcast(&root_value, 1, MPI_INT, i % size, comms[t]));
            EXPECT_INT(root_value, 5000 + t + i);
            if (i % 8 == 0) OK(MPI_Barrier(comms[t]));
        }
    });
    for (MPI_Comm& comm : comms) OK(MPI_Comm_free(&comm));
}

// All threads receive with wildcards on one communicator: each message is received exactly once.
void wildcards() {
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    constexpr int kEach = 100;
    static std::atomic<int> seen[kThreads * kEach];
    for (auto& s : seen) s = 0;
    int to = (rank + 1) % size;
    std::thread sender([=] {
        for (int i = 0; i < kThreads * kEach; i++) OK(MPI_Send(&i, 1, MPI_INT, to, i % 3, comm));
    });
    in_threads(kThreads, [=](int) {
        for (int i = 0; i < kEach; i++) {
            int value = -1;
            OK(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE));
            CHECK(value >= 0 && value < kThreads * kEach, "%d", value);
            seen[value]++;
        }
    });
    sender.join();
    for (auto& s : seen) EXPECT_INT(s.load(), 1);
    OK(MPI_Comm_free(&comm));
}

// MPI_Mprobe by several threads: no other thread can receive a matched message.
void matched_probes() {
    constexpr int kEach = 50;
    int to = (rank + 1) % size;
    std::thread sender([=] {
        std::vector<int> data(2000);
        for (int i = 0; i < kThreads * kEach; i++) {
            int n = 1 + i * 7 % 2000;
            std::fill(data.begin(), data.end(), n);
            OK(MPI_Send(data.data(), n, MPI_INT, to, 77, MPI_COMM_WORLD));
        }
    });
    in_threads(kThreads, [](int) {
        for (int i = 0; i < kEach; i++) {
            MPI_Message message;
            MPI_Status status;
            int n;
            OK(MPI_Mprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &message, &status));
            OK(MPI_Get_count(&status, MPI_INT, &n));
            std::vector<int> data(n);
            OK(MPI_Mrecv(data.data(), n, MPI_INT, &message, MPI_STATUS_IGNORE));
            for (int value : data) EXPECT_INT(value, n);
        }
    });
    sender.join();
}

// One thread is blocked in a receive that another thread of the same process satisfies.
void wake_by_own_thread() {
    for (int i = 0; i < 20; i++) {
        std::thread receiver([] {
            int value = 0;
            OK(MPI_Recv(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF, MPI_STATUS_IGNORE));
            EXPECT_INT(value, 42);
        });
        std::thread sender([] {
            int value = 42;
            OK(MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_SELF));
        });
        receiver.join();
        sender.join();
    }
}

// Several threads create communicators at once, each from its own parent.
void create_in_threads() {
    std::vector<MPI_Comm> comms(kThreads);
    for (MPI_Comm& comm : comms) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    in_threads(kThreads, [&comms](int t) {
        for (int i = 0; i < 4; i++) {
            MPI_Comm dup, half;
            OK(MPI_Comm_dup(comms[t], &dup));
            OK(MPI_Comm_split(dup, rank % 2, rank, &half));
            int sum = 0, one = 1, half_size;
            OK(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, half));
            OK(MPI_Comm_size(half, &half_size));
            EXPECT_INT(sum, half_size);
            OK(MPI_Comm_free(&half));
            OK(MPI_Comm_free(&dup));
        }
    });
    for (MPI_Comm& comm : comms) OK(MPI_Comm_free(&comm));
}

}  // namespace

int main(int argc, char** argv) {
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    EXPECT_INT(provided, MPI_THREAD_MULTIPLE);
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    point_to_point();
    collectives();
    wildcards();
    matched_probes();
    wake_by_own_thread();
    create_in_threads();
    OK(MPI_Finalize());
    return 0;
}
