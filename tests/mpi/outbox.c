// Tests outboxes with real processes. Several jobs receive from one sender at once, both sides send, and scattered data is packed directly
// into the outbox. Receivers that do not poll fill it; one of them is killed while it holds blocks, and a sender is killed after its
// messages. After each of these the sender continues, and at the end no block is held.
#include <signal.h>

#include "dynamic.h"

enum {
    kStop = 0,
    kEcho = 1,      ///< first tag of messages that are sent back
    kQuiet = 2000,  ///< first tag of messages that are not sent back
    kHolders = 3,   ///< number of receivers that do not poll; with only one, its inbox would be full before the sender's outbox
    kHeld = 240,    ///< messages to all holders together: more than an outbox holds
    kHeldBytes = 16000,
    kLongest = 300000,
};
static const int kSizes[] = {40, 900, 1100, 4096, 8200, 16000, 16384, 16385, 40000, 70000, kLongest};
enum { kSizeCount = sizeof kSizes / sizeof *kSizes };

static unsigned char byte_of(int message, int at) { return (unsigned char)(message * 31 + at * 7 + (at >> 8)); }
static void fill(unsigned char* data, int bytes, int message) {
    for (int i = 0; i < bytes; i++) data[i] = byte_of(message, i);
}
static void check(const unsigned char* data, int bytes, int message) {
    for (int i = 0; i < bytes; i++) CHECK(data[i] == byte_of(message, i), "message %d, byte %d of %d", message, i, bytes);
}

/// Receives and checks a message from rank 0 of `inter`. Returns its tag.
static int receive(unsigned char* data, MPI_Comm inter, int* bytes) {
    MPI_Status status;
    OK(MPI_Recv(data, kLongest, MPI_BYTE, 0, MPI_ANY_TAG, inter, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, bytes));
    check(data, *bytes, status.MPI_TAG);
    return status.MPI_TAG;
}

/// Sends received messages back until kStop arrives.
static void child_echo(MPI_Comm parent) {
    unsigned char* data = malloc(kLongest);
    int bytes;
    for (int tag; (tag = receive(data, parent, &bytes)) != kStop;)
        if (tag < kQuiet) OK(MPI_Send(data, bytes, MPI_BYTE, 0, tag, parent));
    free(data);
}

/// Sends its process id, then does not poll until it is killed, or for 300 ms.
static void child_hold(MPI_Comm parent, int looks_in_the_end) {
    int me = (int)getpid();
    OK(MPI_Send(&me, 1, MPI_INT, 0, kEcho, parent));
    while (!looks_in_the_end) pause();
    usleep(300000);
    child_echo(parent);
}

/// Sends a few messages, and starts one more before it dies.
static void child_die(MPI_Comm parent) {
    unsigned char* data = malloc(kLongest);
    for (int m = 1; m <= 5; m++) {
        fill(data, kSizes[m], m);
        OK(MPI_Send(data, kSizes[m], MPI_BYTE, 0, m, parent));
    }
    MPI_Request request;
    fill(data, kLongest, 6);
    OK(MPI_Isend(data, kLongest, MPI_BYTE, 0, 6, parent, &request));
    raise(SIGKILL);
}

static unsigned char *out, *in;

static void stop(MPI_Comm* inter, int count) {
    for (int r = 0; r < count; r++) OK(MPI_Send(out, 0, MPI_BYTE, r, kStop, *inter));
    OK(MPI_Comm_disconnect(inter));
}

/// Sends messages to `count` receivers at once and receives them back: all sends are posted before the first receive.
static void exchange(MPI_Comm* inters, int count, int rounds) {
    MPI_Request requests[8];
    unsigned char* copies[8];
    for (int i = 0; i < count; i++) copies[i] = malloc(kLongest);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < count; i++) {
            const int message = 1 + round * count + i, bytes = kSizes[(round + i) % kSizeCount];
            fill(copies[i], bytes, message);
            OK(MPI_Isend(copies[i], bytes, MPI_BYTE, 0, message, inters[i], &requests[i]));
        }
        for (int i = 0; i < count; i++) {
            int bytes;
            EXPECT_INT(receive(in, inters[i], &bytes), 1 + round * count + i);
            EXPECT_INT(bytes, kSizes[(round + i) % kSizeCount]);
        }
        OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE));
    }
    for (int i = 0; i < count; i++) free(copies[i]);
}

/// Both sides send before they receive; some sizes require the other side's reply.
static void both_ways(MPI_Comm inter, int mine, int rounds) {
    for (int round = 0; round < rounds; round++) {
        const int bytes = kSizes[round % kSizeCount];
        fill(out, bytes, round);
        OK(MPI_Sendrecv(out, bytes, MPI_BYTE, 0, mine, in, kLongest, MPI_BYTE, 0, 1 - mine, inter, MPI_STATUS_IGNORE));
        check(in, bytes, round);
    }
}

/// Sends every other byte of a buffer, so that no part can be sent in place.
static void scattered(MPI_Comm inter) {
    unsigned char* wide = calloc(2, kLongest);
    for (int s = 0; s < kSizeCount; s++) {
        MPI_Datatype every_other;
        OK(MPI_Type_vector(kSizes[s], 1, 2, MPI_BYTE, &every_other));
        OK(MPI_Type_commit(&every_other));
        for (int i = 0; i < kSizes[s]; i++) wide[2 * i] = byte_of(kEcho + s, i);
        OK(MPI_Send(wide, 1, every_other, 0, kEcho + s, inter));
        memset(wide, 0, (size_t)2 * kLongest);
        OK(MPI_Recv(wide, 1, every_other, 0, kEcho + s, inter, MPI_STATUS_IGNORE));
        for (int i = 0; i < kSizes[s]; i++) CHECK(wide[2 * i] == byte_of(kEcho + s, i), "%d bytes, byte %d", kSizes[s], i);
        OK(MPI_Type_free(&every_other));
    }
    free(wide);
}

/// Fills the outbox with messages to receivers that do not poll. Returns their process ids in `processes`.
static void fill_outbox(MPI_Comm holders, unsigned char* held, MPI_Request* requests, int* processes) {
    for (int r = 0; r < kHolders; r++) OK(MPI_Recv(&processes[r], 1, MPI_INT, r, kEcho, holders, MPI_STATUS_IGNORE));
    for (int i = 0; i < kHeld; i++) {
        fill(held + i * kHeldBytes, kHeldBytes, kQuiet + i);
        OK(MPI_Isend(held + i * kHeldBytes, kHeldBytes, MPI_BYTE, i % kHolders, kQuiet + i, holders, &requests[i]));
    }
}

/// Returns how often this process's outbox was full.
static unsigned long long times_full(void) {
    static MPI_T_pvar_session session = MPI_T_PVAR_SESSION_NULL;
    static MPI_T_pvar_handle handle;
    if (session == MPI_T_PVAR_SESSION_NULL) {
        int index, count, provided;
        OK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided));
        OK(MPI_T_pvar_session_create(&session));
        OK(MPI_T_pvar_get_index("outbox_full", MPI_T_PVAR_CLASS_COUNTER, &index));
        OK(MPI_T_pvar_handle_alloc(session, index, NULL, &handle, &count));
        OK(MPI_T_pvar_start(session, handle));
    }
    unsigned long long times = 0;
    OK(MPI_T_pvar_read(session, handle, &times));
    return times;
}

static void held_by_one_that_looks_late(MPI_Comm other, unsigned char* held, MPI_Request* requests) {
    MPI_Comm holders = spawn_self("late", kHolders, MPI_COMM_SELF);
    int processes[kHolders];
    const unsigned long long before = times_full();
    fill_outbox(holders, held, requests, processes);
    exchange(&other, 1, 20);
    CHECK(times_full() > before, "the outbox was never full");
    OK(MPI_Waitall(kHeld, requests, MPI_STATUSES_IGNORE));
    stop(&holders, kHolders);
}

static void held_by_one_that_dies(MPI_Comm other, unsigned char* held, MPI_Request* requests) {
    MPI_Comm holders = spawn_self("never", kHolders, MPI_COMM_SELF);
    OK(MPI_Comm_set_errhandler(holders, MPI_ERRORS_RETURN));
    int processes[kHolders];
    fill_outbox(holders, held, requests, processes);
    exchange(&other, 1, 20);
    for (int r = 0; r < kHolders; r++) kill(processes[r], SIGKILL);
    int failed = 0;
    for (int i = 0; i < kHeld; i++) failed += MPI_Wait(&requests[i], MPI_STATUS_IGNORE) != MPI_SUCCESS;
    CHECK(failed > 0, "all %d sends completed although the receivers never polled", kHeld);
    OK(MPI_Comm_free(&holders));
    const unsigned long long before = times_full();
    exchange(&other, 1, 2 * kSizeCount);
    EXPECT_INT(times_full(), before);  // expects that the dead process's blocks are free again
}

static void from_one_that_dies(void) {
    MPI_Comm sender = spawn_self("die", 1, MPI_COMM_SELF);
    OK(MPI_Comm_set_errhandler(sender, MPI_ERRORS_RETURN));
    for (int m = 1; m <= 5; m++) {
        int bytes;
        EXPECT_INT(receive(in, sender, &bytes), m);
        EXPECT_INT(bytes, kSizes[m]);
    }
    if (MPI_Recv(in, kLongest, MPI_BYTE, 0, 6, sender, MPI_STATUS_IGNORE) == MPI_SUCCESS) check(in, kLongest, 6);
    CHECK(MPI_Recv(in, kLongest, MPI_BYTE, 0, 7, sender, MPI_STATUS_IGNORE) != MPI_SUCCESS, "received what was never sent");
    OK(MPI_Comm_free(&sender));
}

int main(int argc, char** argv) {
    MPI_Comm parent;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parent));
    out = malloc(kLongest), in = malloc(kLongest);
    if (parent != MPI_COMM_NULL) {
        if (strcmp(argv[1], "both") == 0) both_ways(parent, 1, 5 * kSizeCount);
        if (strcmp(argv[1], "die") == 0) child_die(parent);
        if (strcmp(argv[1], "never") == 0) child_hold(parent, 0);
        if (strcmp(argv[1], "late") == 0) child_hold(parent, 1);
        if (strcmp(argv[1], "late") != 0) child_echo(parent);
        OK(MPI_Comm_disconnect(&parent));
    } else {
        unsigned char* held = malloc((size_t)kHeld * kHeldBytes);
        MPI_Request requests[kHeld];
        MPI_Comm jobs[3];
        for (int i = 0; i < 3; i++) jobs[i] = spawn_self("echo", 1, MPI_COMM_SELF);
        exchange(jobs, 3, 100);
        scattered(jobs[0]);
        held_by_one_that_looks_late(jobs[1], held, requests);
        held_by_one_that_dies(jobs[1], held, requests);
        from_one_that_dies();
        exchange(jobs, 3, 2 * kSizeCount);
        for (int i = 0; i < 3; i++) stop(&jobs[i], 1);
        MPI_Comm both = spawn_self("both", 1, MPI_COMM_SELF);
        both_ways(both, 0, 5 * kSizeCount);
        stop(&both, 1);
        free(held);
    }
    free(out), free(in);
    OK(MPI_Finalize());
    return 0;
}
