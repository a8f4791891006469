// Jobs that hang; argv[1] selects how. They hang until they are killed.
#include <mpi.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;
static char buffer[1 << 20];

static void receive(int from, int tag, MPI_Comm comm) { MPI_Recv(buffer, 4, MPI_CHAR, from, tag, comm, MPI_STATUS_IGNORE); }
static void send_to(int to, int tag, MPI_Comm comm) { MPI_Send(buffer, 4, MPI_CHAR, to, tag, comm); }

// Each rank receives from the next before it sends.
static void cycle(void) {
    receive((rank + 1) % size, 7, MPI_COMM_WORLD);
    send_to((rank + size - 1) % size, 7, MPI_COMM_WORLD);
}

// Each rank sends first, more than any buffer holds.
static void sends(void) {
    MPI_Send(buffer, sizeof buffer, MPI_CHAR, (rank + 1) % size, 3, MPI_COMM_WORLD);
    MPI_Recv(buffer, sizeof buffer, MPI_CHAR, (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void wrong_tag(void) {
    if (rank == 0) send_to(1, 8, MPI_COMM_WORLD);
    if (rank == 1) receive(0, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void wrong_communicator(void) {
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "the twin");
    if (rank == 0) send_to(1, 7, twin);
    if (rank == 1) receive(0, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void collectives(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    int value = 0;
    MPI_Bcast(&value, 1, MPI_INT, size - 1 - (rank == size - 1), MPI_COMM_WORLD);
}

// All ranks but rank 0 wait for the second of two collectives, which rank 0 never calls.
static void outstanding(void) {
    static int in, out;
    MPI_Request requests[2];
    if (rank == 0) receive(1, 7, MPI_COMM_WORLD);
    MPI_Iallreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

static void loop(void) {
    if (rank == size - 1)
        for (volatile unsigned i = 0;; i++) {}
    MPI_Barrier(MPI_COMM_WORLD);
}

static void* compute(void* unused) {
    for (volatile unsigned i = 0;; i++) {}
    return unused;
}

// The first thread of the last rank ends, and another one computes.
static void first_thread_ends(void) {
    pthread_t thread;
    if (rank == size - 1 && pthread_create(&thread, NULL, compute, NULL) == 0) pthread_exit(NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void stopped(void) {
    if (rank == 0) poll(NULL, 0, -1);  // the test stops rank 0 here
    MPI_Barrier(MPI_COMM_WORLD);
}

static void tests(void) {
    MPI_Request request;
    MPI_Irecv(buffer, 4, MPI_CHAR, (rank + 1) % size, 5, MPI_COMM_WORLD, &request);
    for (int done = 0; !done;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// The ranks wait for one or all of several receives without senders.
static void several(void) {
    MPI_Request requests[3];
    for (int i = 0; i < 3; i++) MPI_Irecv(buffer + 8 * i, 4, MPI_CHAR, (rank + 1) % size, 10 + i, MPI_COMM_WORLD, &requests[i]);
    int which;
    if (rank == 0) MPI_Waitany(3, requests, &which, MPI_STATUS_IGNORE);
    if (rank != 0) MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

static void probe(void) {
    MPI_Status status;
    MPI_Probe(rank == 0 ? MPI_ANY_SOURCE : 0, 9, MPI_COMM_WORLD, &status);
}

// Rank 0 holds the lock of its window and waits for rank 1, which requests the lock.
static void window_lock(void) {
    MPI_Win win;
    void* memory;
    MPI_Win_allocate(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    if (rank == 0) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    if (rank == 0) receive(1, 7, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

// A rank accesses memory that only its owner can access, and the owner is outside the library.
static void window_access(void) {
    MPI_Win win;
    MPI_Win_create(buffer, sizeof buffer, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) poll(NULL, 0, -1);
    long one = 1, before;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, win);
    MPI_Win_flush(1, win);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Opens a file on all ranks, which is deleted at once and has no name then. Rank 1 stays outside of the library.
static MPI_File file_without_rank_1(void) {
    char name[] = "/tmp/starling-tests-stuck-XXXXXX";
    if (rank == 0) close(mkstemp(name));
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(name);
    if (rank == 1) poll(NULL, 0, -1);
    return file;
}

static void file_write(void) { MPI_File_write_at_all(file_without_rank_1(), 0, buffer, 4, MPI_CHAR, MPI_STATUS_IGNORE); }

static void file_split(void) {
    MPI_File file = file_without_rank_1();
    MPI_File_write_at_all_begin(file, 0, buffer, 4, MPI_CHAR);
    MPI_File_write_at_all_end(file, buffer, MPI_STATUS_IGNORE);
}

static void file_ordered(void) {
    MPI_File file = file_without_rank_1();
    MPI_File_write_ordered_begin(file, buffer, 4, MPI_CHAR);
    MPI_File_write_ordered_end(file, buffer, MPI_STATUS_IGNORE);
}

// Not stuck: rank 0 sends a message every half second for five seconds.
// Gets on twice a second, for longer than the reporting delay.
static void goes_on(void) {
    for (int i = 0; i < 14; i++) {
        if (rank == 0) poll(NULL, 0, 1000);
        for (int to = 1; rank == 0 && to < size; to++) send_to(to, i, MPI_COMM_WORLD);
        if (rank != 0) receive(0, i, MPI_COMM_WORLD);
    }
}

static void absent_sender(void) {
    if (rank == 0) receive(1, 7, MPI_COMM_WORLD);
}

static void absent_barrier(void) { MPI_Barrier(MPI_COMM_WORLD); }

// Rank 1 is missing, but ranks 0 and 2 do not need it; rank 0 waits for rank 2 longer than the reporting delay.
static void absent_stranger(void) {
    if (rank == 0) receive(2, 7, MPI_COMM_WORLD);
    poll(NULL, 0, 2500);
    if (rank == 2) send_to(0, 7, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } kWays[] = {{"cycle", cycle},
                 {"sends", sends},
                 {"wrong_tag", wrong_tag},
                 {"wrong_communicator", wrong_communicator},
                 {"collectives", collectives},
                 {"outstanding", outstanding},
                 {"loop", loop},
                 {"first_thread_ends", first_thread_ends},
                 {"stopped", stopped},
                 {"tests", tests},
                 {"several", several},
                 {"probe", probe},
                 {"window_lock", window_lock},
                 {"window_access", window_access},
                 {"file_write", file_write},
                 {"file_split", file_split},
                 {"file_ordered", file_ordered},
                 {"goes_on", goes_on},
                 {"absent_sender", absent_sender},
                 {"absent_barrier", absent_barrier},
                 {"absent_stranger", absent_stranger}};
    // Rank 1 exits with 0 before MPI_Init, like a program with an unnoticed error.
    const char* number = getenv("STARLING_RANK");
    if (argc > 1 && !strncmp(argv[1], "absent", 6) && number && !strcmp(number, "1")) return 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; argc > 1 && i < sizeof kWays / sizeof *kWays; i++)
        if (!strcmp(argv[1], kWays[i].name)) kWays[i].run();
    MPI_Finalize();
    return 0;
}
