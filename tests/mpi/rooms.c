// Tests collective operations on data larger than a slot of the shared-memory stage, whose fragments share the outbox with messages'
// payloads. Unreceived messages fill most of the outbox, and a root leaves the operation long before the other ranks join. There are more
// communicators than the outbox can serve. Also tests packed types.
#include <unistd.h>

#include "check.h"

enum { kMost = 1 << 18, kHoarded = 320, kHoard = 2048 /* ints */, kCommunicators = 40 };

static int rank, size, *in, *out;

static int value(int from, int to, int i) { return from * 7919 + to * 104729 + i * 31; }

static void expect_sum(int count) {
    for (int i = 0; i < count; i++) EXPECT_INT(out[i], size * (size - 1) / 2 * 7919 + size * i * 31);
}

static void broadcast(MPI_Comm comm, int me, int root, int count) {
    for (int i = 0; i < count; i++) in[i] = me == root ? value(root, 1, i) : -1;
    OK(MPI_Bcast(in, count, MPI_INT, root, comm));
    for (int i = 0; i < count; i++) EXPECT_INT(in[i], value(root, 1, i));
}

static void reductions(MPI_Comm comm, int me, int root, int count) {
    for (int i = 0; i < count; i++) in[i] = value(me, 0, i), out[i] = -1;
    OK(MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm));
    expect_sum(count);
    memset(out, 0, sizeof(int) * count);
    OK(MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, root, comm));
    if (me == root) expect_sum(count);
    memcpy(out, in, sizeof(int) * count);
    OK(MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT, MPI_SUM, comm));
    expect_sum(count);
    memcpy(out, in, sizeof(int) * count);
    OK(MPI_Reduce(me == root ? MPI_IN_PLACE : out, out, count, MPI_INT, MPI_SUM, root, comm));
    if (me == root) expect_sum(count);
}

static void exchanges(MPI_Comm comm, int me, int block) {
    for (int i = 0; i < block; i++) in[i] = value(me, 2, i);
    OK(MPI_Allgather(in, block, MPI_INT, out, block, MPI_INT, comm));
    for (int from = 0; from < size; from++)
        for (int i = 0; i < block; i++) EXPECT_INT(out[from * block + i], value(from, 2, i));
    for (int to = 0; to < size; to++)
        for (int i = 0; i < block; i++) in[to * block + i] = value(me, to, i);
    memcpy(out, in, sizeof(int) * block * size);
    OK(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_INT, out, block, MPI_INT, comm));
    for (int from = 0; from < size; from++)
        for (int i = 0; i < block; i++) EXPECT_INT(out[from * block + i], value(from, me, i));
    memset(out, 0, sizeof(int) * block * size);
    OK(MPI_Alltoall(in, block, MPI_INT, out, block, MPI_INT, comm));
    for (int from = 0; from < size; from++)
        for (int i = 0; i < block; i++) EXPECT_INT(out[from * block + i], value(from, me, i));
}

// Odd ranks use every other int, even ranks all of them; the type signatures are equal.
static void packed(MPI_Comm comm, int me, int root, int count) {
    const int step = me % 2 ? 2 : 1;
    MPI_Datatype type;
    OK(MPI_Type_vector(count, 1, step, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < count; i++) in[i * step] = me == root ? value(root, 3, i) : -1;
    OK(MPI_Bcast(in, 1, type, root, comm));
    for (int i = 0; i < count; i++) EXPECT_INT(in[i * step], value(root, 3, i));
    const int block = count / size;
    OK(MPI_Type_free(&type));
    OK(MPI_Type_vector(block, 1, step, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    for (int i = 0; i < block; i++) in[i * step] = value(me, 4, i);
    OK(MPI_Allgather(in, 1, type, out, block, MPI_INT, comm));
    for (int from = 0; from < size; from++)
        for (int i = 0; i < block; i++) EXPECT_INT(out[from * block + i], value(from, 4, i));
    OK(MPI_Type_free(&type));
}

static void everything(MPI_Comm comm) {
    static const int counts[] = {1025, 2049, 4096, 16383, 16385, 32771, 100003};
    int me;
    OK(MPI_Comm_rank(comm, &me));
    for (int c = 0; c < (int)(sizeof counts / sizeof *counts); c++) {
        const int root = c % size;
        broadcast(comm, me, root, counts[c]);
        reductions(comm, me, root, counts[c]);
        exchanges(comm, me, counts[c] / size + 1);
        packed(comm, me, root, counts[c]);
    }
}

static void beside_messages_that_nobody_receives(MPI_Comm comm) {
    static int sent[kHoard], received[kHoard];
    MPI_Request requests[kHoarded];
    const int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int i = 0; i < kHoard; i++) sent[i] = value(rank, 5, i);
    for (int m = 0; m < kHoarded; m++) OK(MPI_Isend(sent, kHoard, MPI_INT, next, m, MPI_COMM_WORLD, &requests[m]));
    everything(comm);
    for (int m = 0; m < kHoarded; m++) {
        OK(MPI_Recv(received, kHoard, MPI_INT, before, m, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < kHoard; i++) EXPECT_INT(received[i], value(before, 5, i));
    }
    OK(MPI_Waitall(kHoarded, requests, MPI_STATUSES_IGNORE));
}

// Outbox blocks that the root's readers still need must stay intact after the root has freed the communicator, although messages compete
// for the memory.
static void readers_come_late(int round) {
    enum { kCount = 20000 };
    MPI_Comm comm;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    broadcast(comm, rank, 0, 8);
    broadcast(comm, rank, 0, 8);
    if (rank > 0) usleep(20000);
    broadcast(comm, rank, 0, kCount);
    if (round % 2) OK(MPI_Comm_free(&comm));
    static int data[kHoard];
    for (int m = 0; m < kHoarded; m++) {
        for (int i = 0; i < kHoard; i++) data[i] = rank == 0 ? value(m, 6, i) : -1;
        if (rank == 0)
            for (int to = 1; to < size; to++) OK(MPI_Send(data, kHoard, MPI_INT, to, 6, MPI_COMM_WORLD));
        else
            OK(MPI_Recv(data, kHoard, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        for (int i = 0; i < kHoard; i++) EXPECT_INT(data[i], value(m, 6, i));
    }
    if (round % 2 == 0) OK(MPI_Comm_free(&comm));
}

static void more_communicators_than_fit(void) {
    static MPI_Comm comms[kCommunicators];
    for (int c = 0; c < kCommunicators; c++) OK(MPI_Comm_dup(MPI_COMM_WORLD, &comms[c]));
    for (int turn = 0; turn < 4; turn++)
        for (int c = 0; c < kCommunicators; c++) {
            broadcast(comms[c], rank, c % size, 20000);
            if (turn % 2) exchanges(comms[c], rank, 5000);
        }
    for (int c = 0; c < kCommunicators; c++) OK(MPI_Comm_free(&comms[c]));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    in = malloc(sizeof *in * kMost), out = malloc(sizeof *out * kMost);
    MPI_Comm turned;
    OK(MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned));
    everything(MPI_COMM_WORLD);
    everything(turned);
    beside_messages_that_nobody_receives(turned);
    for (int round = 0; round < 4; round++) readers_come_late(round);
    more_communicators_than_fit();
    everything(turned);
    OK(MPI_Comm_free(&turned));
    free(in), free(out);
    OK(MPI_Finalize());
    return 0;
}
