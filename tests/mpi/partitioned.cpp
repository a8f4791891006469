// Tests partitioned communication. Sender and receiver use different numbers of partitions and different types; partitions are marked ready
// in any order, by range, by list and by threads. Several messages share one tag, requests are restarted, and early partitions arrive
// before the rest. Also tests errors.
#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "check.h"

namespace {

int rank, size;

int element(int key, int i) { return (key * 1009 + i * 7) % 100003; }

void mark_all(MPI_Request send, int partitions, int way, uint64_t* state) {
    std::vector<int> order(partitions);
    for (int i = 0; i < partitions; i++) order[i] = i;
    for (int i = partitions; i > 1; i--) std::swap(order[i - 1], order[random_below(state, i)]);
    const int half = partitions / 2;
    switch (way) {
        case 0:
            for (int i : order) OK(MPI_Pready(i, send));
            break;
        case 1:
            OK(MPI_Pready_list(half, order.data(), send));
            OK(MPI_Pready_list(partitions - half, order.data() + half, send));
            break;
        default:
            if (partitions > half) OK(MPI_Pready_range(half, partitions - 1, send));
            if (half > 0) OK(MPI_Pready_range(0, half - 1, send));
    }
}

/// Passes a message of `total` ints around a ring, in `ours` partitions sent and `theirs` received.
void around(int ours, int theirs, int total, bool gaps_out, bool gaps_in, uint64_t* state) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Datatype gap;
    OK(MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gap));
    OK(MPI_Type_commit(&gap));
    const int step_out = gaps_out ? 2 : 1, step_in = gaps_in ? 2 : 1;
    std::vector<int> out(total * step_out + 1), in(total * step_in + 1);
    MPI_Request send, receive;
    OK(MPI_Psend_init(out.data(), ours, total / ours, gaps_out ? gap : MPI_INT, to, 5, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(in.data(), theirs, total / theirs, gaps_in ? gap : MPI_INT, from, 5, MPI_COMM_WORLD, MPI_INFO_NULL,
                      &receive));
    OK(MPI_Type_free(&gap));
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < total; i++) out[i * step_out] = element(rank + turn, i);
        std::fill(in.begin(), in.end(), -1);
        // The receive is started before or after the send, in turn.
        if ((rank + turn) % 2) OK(MPI_Start(&receive));
        OK(MPI_Start(&send));
        mark_all(send, ours, turn % 3, state);
        if ((rank + turn) % 2 == 0) OK(MPI_Start(&receive));
        if (turn == 1)
            for (int p = 0; p < theirs; p++) {
                int there = 0;
                while (!there) OK(MPI_Parrived(receive, p, &there));
                for (int i = p * (total / theirs); i < (p + 1) * (total / theirs); i++)
                    EXPECT_INT(in[i * step_in], element(from + turn, i));
            }
        MPI_Status status;
        OK(MPI_Wait(&receive, &status));
        EXPECT_INT(status.MPI_SOURCE, from);
        EXPECT_INT(status.MPI_TAG, 5);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        for (int i = 0; i < total; i++) {
            EXPECT_INT(in[i * step_in], element(from + turn, i));
            if (gaps_in) EXPECT_INT(in[i * 2 + 1], -1);
        }
        int flag = 0;
        OK(MPI_Parrived(receive, 0, &flag));  // the receive is complete
        EXPECT_INT(flag, 1);
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    EXPECT_INT(send == MPI_REQUEST_NULL && receive == MPI_REQUEST_NULL, 1);
}

/// Two thirds of the data arrive before the last partition is marked ready: no partition waits for the whole message.
void in_parts() {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int n : {1, 300, 40000}) {
        std::vector<int> out(3 * n), in(3 * n);
        for (int i = 0; i < 3 * n; i++) out[i] = element(rank, i);
        MPI_Request requests[2];
        OK(MPI_Precv_init(in.data(), 3, n, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
        OK(MPI_Psend_init(out.data(), 3, n, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
        OK(MPI_Startall(2, requests));
        OK(MPI_Pready(2, requests[1]));
        OK(MPI_Pready(0, requests[1]));
        int there = 0;
        while (!there) OK(MPI_Parrived(requests[0], 2, &there));
        there = 0;
        while (!there) OK(MPI_Parrived(requests[0], 0, &there));
        for (int i = 0; i < n; i++) {
            EXPECT_INT(in[i], element(from, i));
            EXPECT_INT(in[2 * n + i], element(from, 2 * n + i));
        }
        OK(MPI_Parrived(requests[0], 1, &there));
        EXPECT_INT(there, 0);
        int done = 1;
        OK(MPI_Test(&requests[1], &done, MPI_STATUS_IGNORE));
        EXPECT_INT(done, 0);
        OK(MPI_Barrier(MPI_COMM_WORLD));
        OK(MPI_Pready(1, requests[1]));
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (int i = 0; i < 3 * n; i++) EXPECT_INT(in[i], element(from, i));
        for (auto& request : requests) OK(MPI_Request_free(&request));
    }
}

/// Partitioned messages with one tag match in the order of their init calls, whatever order they are started in. They never match messages
/// that are not partitioned.
void one_tag() {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    constexpr int kMany = 6;
    int out[kMany][4], in[kMany][4], word = rank, other = -1;
    MPI_Request sends[kMany], receives[kMany], plain;
    OK(MPI_Irecv(&other, 1, MPI_INT, from, 9, MPI_COMM_WORLD, &plain));
    for (int i = 0; i < kMany; i++) {
        OK(MPI_Psend_init(out[i], 4, 1, MPI_INT, to, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &sends[i]));
        OK(MPI_Precv_init(in[i], 2, 2, MPI_INT, from, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &receives[i]));
    }
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < kMany; i++)
            for (int e = 0; e < 4; e++) out[i][e] = element(rank, turn * 100 + i * 4 + e), in[i][e] = -1;
        for (int i = kMany - 1; i >= 0; i--) {
            OK(MPI_Start(&sends[i]));
            OK(MPI_Pready_range(0, 3, sends[i]));
        }
        if (turn == 1) OK(MPI_Send(&word, 1, MPI_INT, to, 9, MPI_COMM_WORLD));
        OK(MPI_Startall(kMany, receives));
        OK(MPI_Waitall(kMany, receives, MPI_STATUSES_IGNORE));
        OK(MPI_Waitall(kMany, sends, MPI_STATUSES_IGNORE));
        for (int i = 0; i < kMany; i++)
            for (int e = 0; e < 4; e++) EXPECT_INT(in[i][e], element(from, turn * 100 + i * 4 + e));
    }
    OK(MPI_Wait(&plain, MPI_STATUS_IGNORE));
    EXPECT_INT(other, from);
    for (int i = 0; i < kMany; i++) {
        OK(MPI_Request_free(&sends[i]));
        OK(MPI_Request_free(&receives[i]));
    }
}

/// Requests are prepared and freed without a start, on both sides: later requests must not match them.
void never_started() {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    int out = rank, in = -1;
    long long unused[8];
    for (int i = 0; i < 20; i++) {
        MPI_Request send, receive;
        OK(MPI_Precv_init(unused, 2, 4, MPI_LONG_LONG, from, 1, comm, MPI_INFO_NULL, &receive));
        OK(MPI_Request_free(&receive));
        OK(MPI_Psend_init(unused, 8, 1, MPI_LONG_LONG, to, 1, comm, MPI_INFO_NULL, &send));
        OK(MPI_Request_free(&send));
    }
    MPI_Request requests[2];
    OK(MPI_Precv_init(&in, 1, 1, MPI_INT, from, 1, comm, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Psend_init(&out, 1, 1, MPI_INT, to, 1, comm, MPI_INFO_NULL, &requests[1]));
    OK(MPI_Comm_free(&comm));
    OK(MPI_Startall(2, requests));
    OK(MPI_Pready(0, requests[1]));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    EXPECT_INT(in, from);
    for (auto& request : requests) OK(MPI_Request_free(&request));
}

void nobody() {
    int data[4] = {1, 2, 3, 4};
    MPI_Request send, receive;
    OK(MPI_Psend_init(data, 4, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(data, 2, 2, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &receive));
    for (int turn = 0; turn < 2; turn++) {
        MPI_Status status;
        OK(MPI_Start(&send));
        OK(MPI_Start(&receive));
        OK(MPI_Pready_range(0, 3, send));
        OK(MPI_Wait(&receive, &status));
        EXPECT_INT(status.MPI_SOURCE, MPI_PROC_NULL);
        OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
        EXPECT_INT(data[3], 4);
    }
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
}

/// Four threads mark partitions of one message.
void threads() {
    constexpr int kThreads = 4, kEach = 25, kLength = 50;
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    std::vector<int> out(kThreads * kEach * kLength), in(out.size());
    MPI_Request requests[2];
    OK(MPI_Precv_init(in.data(), kEach, kThreads * kLength, MPI_INT, from, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]));
    OK(MPI_Psend_init(out.data(), kThreads * kEach, kLength, MPI_INT, to, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]));
    for (int turn = 0; turn < 5; turn++) {
        OK(MPI_Startall(2, requests));
        std::vector<std::thread> all;
        for (int t = 0; t < kThreads; t++)
            all.emplace_back([&, t] {
                for (int p = t; p < kThreads * kEach; p += kThreads) {
                    for (int i = 0; i < kLength; i++) out[p * kLength + i] = element(rank + turn, p * kLength + i);
                    OK(MPI_Pready(p, requests[1]));
                }
            });
        for (auto& thread : all) thread.join();
        OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
        for (size_t i = 0; i < in.size(); i++) EXPECT_INT(in[i], element(from + turn, (int)i));
    }
    for (auto& request : requests) OK(MPI_Request_free(&request));
}

void refuse() {
    MPI_Comm comm;
    int data[4] = {0, 0, 0, 0}, flag;
    MPI_Request send, receive, plain, none = MPI_REQUEST_NULL;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    EXPECT_ERROR(MPI_Psend_init(data, -1, 1, MPI_INT, rank, 0, comm, MPI_INFO_NULL, &send), MPI_ERR_ARG);
    EXPECT_INT(send == MPI_REQUEST_NULL, 1);
    EXPECT_ERROR(MPI_Psend_init(data, 1, -1, MPI_INT, rank, 0, comm, MPI_INFO_NULL, &send), MPI_ERR_COUNT);
    EXPECT_ERROR(MPI_Precv_init(data, 1, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm, MPI_INFO_NULL, &receive), MPI_ERR_RANK);
    EXPECT_ERROR(MPI_Precv_init(data, 1, 1, MPI_INT, rank, MPI_ANY_TAG, comm, MPI_INFO_NULL, &receive), MPI_ERR_TAG);
    OK(MPI_Psend_init(data, 2, 1, MPI_INT, rank, 0, comm, MPI_INFO_NULL, &send));
    OK(MPI_Precv_init(data + 2, 1, 1, MPI_INT, rank, 0, comm, MPI_INFO_NULL, &receive));  // no room for all elements sent
    EXPECT_ERROR(MPI_Pready(0, send), MPI_ERR_REQUEST);                                   // the send is not started
    OK(MPI_Start(&send));
    EXPECT_ERROR(MPI_Pready(2, send), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Pready_range(1, 0, send), MPI_ERR_ARG);
    OK(MPI_Pready(1, send));
    EXPECT_ERROR(MPI_Pready(1, send), MPI_ERR_ARG);
    EXPECT_ERROR(MPI_Pready(0, none), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Pready(0, receive), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Parrived(send, 0, &flag), MPI_ERR_REQUEST);
    EXPECT_ERROR(MPI_Parrived(receive, 1, &flag), MPI_ERR_ARG);
    OK(MPI_Pready(0, send));
    OK(MPI_Start(&receive));
    EXPECT_ERROR(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
    OK(MPI_Request_free(&send));
    OK(MPI_Request_free(&receive));
    OK(MPI_Send_init(data, 1, MPI_INT, rank, 0, comm, &plain));
    EXPECT_ERROR(MPI_Pready(0, plain), MPI_ERR_REQUEST);
    OK(MPI_Request_free(&plain));
    OK(MPI_Comm_free(&comm));
}

}  // namespace

int main(int argc, char** argv) {
    int level;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    uint64_t state = start_seed(31);
    const int shapes[][3] = {{1, 1, 1},  {4, 4, 12},   {1, 6, 12},     {6, 1, 12},
                             {4, 6, 24}, {6, 4, 6000}, {3, 5, 150000}, {2, 3, 0}};
    for (const auto& shape : shapes)
        for (int gaps = 0; gaps < 4; gaps++) around(shape[0], shape[1], shape[2], gaps & 1, gaps & 2, &state);
    in_parts();
    one_tag();
    never_started();
    nobody();
    if (level == MPI_THREAD_MULTIPLE) threads();
    refuse();
    OK(MPI_Finalize());
    return 0;
}
