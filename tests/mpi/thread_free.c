// Another thread frees the communicator, datatype and operation of a blocking call while it waits. They must be released only after their
// last use.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static MPI_Comm comm;
static MPI_Datatype type;
static MPI_Op op;
static atomic_int calls;  // the id of the thread that calls

static void begin_call(void) { calls = (int)syscall(SYS_gettid); }

static void add(void* in, void* inout, int* n, MPI_Datatype* its_type) {
    (void)its_type;
    for (int i = 0; i < 2 * *n; i++) ((int*)inout)[i] += ((int*)in)[i];
}

static void* receive(void* unused) {
    int value[2] = {0, 0};
    MPI_Comm mine = comm;
    MPI_Datatype its = type;
    begin_call();
    OK(MPI_Recv(value, 1, its, 0, 5, mine, MPI_STATUS_IGNORE));
    EXPECT_INT(value[0], 42);
    EXPECT_INT(value[1], 43);
    return unused;
}

static void* probe(void* unused) {
    MPI_Comm mine = comm;
    MPI_Status status;
    begin_call();
    OK(MPI_Probe(0, 5, mine, &status));
    EXPECT_INT(status.MPI_TAG, 5);
    return unused;
}

static void* reduce(void* unused) {
    int rank, size, value[2] = {1, 2}, sum[2];
    MPI_Comm mine = comm;
    MPI_Datatype its = type;
    MPI_Op its_op = op;
    OK(MPI_Comm_rank(mine, &rank));
    OK(MPI_Comm_size(mine, &size));
    begin_call();
    OK(MPI_Allreduce(value, sum, 1, its, its_op, mine));
    EXPECT_INT(sum[0], size);
    EXPECT_INT(sum[1], 2 * size);
    return unused;
}

static void make(void) {
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Type_contiguous(2, MPI_INT, &type));
    OK(MPI_Type_commit(&type));
    OK(MPI_Op_create(add, 1, &op));
}

static void let_go(void) {
    OK(MPI_Comm_free(&comm));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
    // New objects may reuse the handles of the freed ones, if those were released.
    make();
    OK(MPI_Comm_free(&comm));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
}

/// Returns the state of a thread of this process, or '?'.
static char state_of(int id) {
    char path[64], text[400] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", id);
    FILE* file = fopen(path, "r");
    const int is_there = file && fgets(text, sizeof text, file);
    if (file) fclose(file);
    const char* end = is_there ? strrchr(text, ')') : NULL;
    return end && end[1] ? end[2] : '?';
}

/// Waits until the thread waits in its call: it sleeps there, or has used 30 ms of a core.
static void await_call(pthread_t thread) {
    clockid_t clock;
    struct timespec used = {0, 0};
    while (!calls) usleep(1000);
    CHECK(!pthread_getcpuclockid(thread, &clock) && !clock_gettime(clock, &used));
    const long until = used.tv_nsec + used.tv_sec * 1000000000L + 30000000L;
    for (int slept = 0; slept < 5 && used.tv_nsec + used.tv_sec * 1000000000L < until;) {
        usleep(10000);
        CHECK(!clock_gettime(clock, &used));
        slept = state_of(calls) == 'S' ? slept + 1 : 0;
    }
}

// Rank 1 waits in `call` and frees the objects meanwhile; the other ranks join only then.
static void freed_under(void* (*call)(void*), int rank) {
    make();
    const MPI_Comm mine = comm;
    const MPI_Datatype its = type;
    calls = 0;
    if (rank == 1) {
        pthread_t thread;
        CHECK(!pthread_create(&thread, NULL, call, NULL));
        await_call(thread);
        let_go();
        OK(MPI_Barrier(MPI_COMM_WORLD));
        pthread_join(thread, NULL);
        return;
    }
    make();  // creates and frees the objects again, because rank 1 does so in let_go()
    OK(MPI_Comm_free(&comm));
    OK(MPI_Type_free(&type));
    MPI_Op_free(&op);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    comm = mine;
    type = its;
    OK(MPI_Op_create(add, 1, &op));
    if (call == reduce) {
        reduce(NULL);
    } else if (rank == 0) {
        const int value[2] = {42, 43};
        OK(MPI_Send(value, 1, type, 1, 5, comm));
    }
    OK(MPI_Comm_free(&comm));
    OK(MPI_Type_free(&type));
    OK(MPI_Op_free(&op));
}

int main(int argc, char** argv) {
    int level, rank;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    for (int i = 0; i < 3; i++) {
        freed_under(receive, rank);
        freed_under(reduce, rank);
        freed_under(probe, rank);
    }
    OK(MPI_Finalize());
    return 0;
}
