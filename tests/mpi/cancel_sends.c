// Tests MPI_Cancel of sends. Each send is cancelled or completes, and MPI_Wait on it returns although no receive is posted; an unmatched
// synchronous send is always cancelled. A message that completes arrives with the data of the time of the send, although the program reuses
// the buffer at once. Within a host the wait returns even while the receiver is outside the library.
#include "check.h"

#include <sched.h>
#include <unistd.h>

enum { kLongest = 1 << 20 };
static char* buffer;
static int rank, to, from;

// Cancels the send and waits for it while no receive is posted. Returns whether the message must still be received.
static int given_up(MPI_Request* request) {
    MPI_Status status;
    int cancelled;
    OK(MPI_Cancel(request));
    OK(MPI_Wait(request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    memset(buffer, 0x55, kLongest);
    return !cancelled;
}

// Receives a message that the neighbor has sent and not cancelled.
static void receive(int bytes, uint64_t key, int tag, int will_come) {
    if (!will_come) return;
    MPI_Status status;
    int count;
    char* in = malloc(kLongest);
    OK(MPI_Recv(in, kLongest, MPI_BYTE, from, tag, MPI_COMM_WORLD, &status));
    OK(MPI_Get_count(&status, MPI_BYTE, &count));
    EXPECT_INT(count, bytes);
    EXPECT_INT(first_wrong_byte(in, (size_t)bytes, key), -1);
    free(in);
}

static int neighbour_sent(int mine) {
    int theirs;
    OK(MPI_Sendrecv(&mine, 1, MPI_INT, to, 1, &theirs, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    return theirs;
}

static void unmatched(int synchronous, int bytes) {
    MPI_Request request;
    fill_bytes(buffer, (size_t)bytes, 3);
    if (synchronous)
        OK(MPI_Issend(buffer, bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD, &request));
    else
        OK(MPI_Isend(buffer, bytes, MPI_BYTE, to, 2, MPI_COMM_WORLD, &request));
    const int will_come = given_up(&request);
    if (synchronous) EXPECT_INT(will_come, 0);
    receive(bytes, 3, 2, neighbour_sent(will_come));
}

// A send that is matched during its cancellation completes. A send that was returned by a matched probe cannot be cancelled.
static void matched(int bytes) {
    MPI_Request send;
    MPI_Status status;
    MPI_Message message;
    int cancelled;
    char* in = malloc(kLongest);
    fill_bytes(buffer, (size_t)bytes, 4);
    OK(MPI_Issend(buffer, bytes, MPI_BYTE, to, 10, MPI_COMM_WORLD, &send));
    OK(MPI_Mprobe(from, 10, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Cancel(&send));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    EXPECT_INT(first_wrong_byte(in, (size_t)bytes, 4), -1);
    OK(MPI_Wait(&send, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 0);
    free(in);
}

// Many sends are cancelled at once, while the receiver receives some of them in the order in which they were sent.
static void race(void) {
    enum { kMany = 200 };
    MPI_Request sends[kMany];
    int numbers[kMany], count = 0, theirs, last = -1;
    uint64_t state = start_seed(2) + (uint64_t)rank;
    for (int i = 0; i < kMany; i++) {
        numbers[i] = i;
        OK(MPI_Issend(&numbers[i], 1, MPI_INT, to, 11, MPI_COMM_WORLD, &sends[i]));
    }
    const int wanted = (int)random_below(&state, kMany);
    int got = 0;
    for (int i = 0; i < kMany; i++) {
        int flag, number;
        OK(MPI_Cancel(&sends[i]));
        OK(MPI_Iprobe(from, 11, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
        if (!flag || got >= wanted) continue;
        MPI_Message message;
        OK(MPI_Improbe(from, 11, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE));
        if (!flag) continue;
        OK(MPI_Mrecv(&number, 1, MPI_INT, &message, MPI_STATUS_IGNORE));
        CHECK(number > last, "message %d was received before message %d", last, number);
        last = number;
        got++;
    }
    for (int i = 0; i < kMany; i++) {
        MPI_Status status;
        int cancelled;
        OK(MPI_Wait(&sends[i], &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        count += !cancelled;
    }
    OK(MPI_Sendrecv(&count, 1, MPI_INT, to, 1, &theirs, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(got, theirs);
}

// Pairs of processes on one host. `flag` is in the shared window `flags`; the receiver polls it outside the library.
static MPI_Comm host;
static MPI_Win flags;
static int host_rank, partner, is_pair;
static volatile int* flag;

static void open_pairs(void) {
    int size, unit;
    MPI_Aint bytes;
    void* memory;
    OK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    OK(MPI_Comm_rank(host, &host_rank));
    OK(MPI_Comm_size(host, &size));
    OK(MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, host, &memory, &flags));
    partner = host_rank ^ 1;
    is_pair = partner < size;
    OK(MPI_Win_shared_query(flags, host_rank & ~1, &bytes, &unit, &memory));
    flag = memory;
}

static void close_pairs(void) {
    OK(MPI_Win_free(&flags));
    OK(MPI_Comm_free(&host));
}

static void barrier_of_two(void) {
    OK(MPI_Sendrecv(NULL, 0, MPI_INT, partner, 20, NULL, 0, MPI_INT, partner, 20, host, MPI_STATUS_IGNORE));
}

static void await_flag(int value) {
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value) sched_yield();
}

static void set_flag(int value) { __atomic_store_n(flag, value, __ATOMIC_RELEASE); }

// Cancels many unmatched sends. The one send that is not cancelled, posted last, must be the first message received.
static void receiver_is_away(int bytes, int many) {
    if (!is_pair) return;
    set_flag(0);
    barrier_of_two();
    if (host_rank % 2 == 0) {
        MPI_Request* requests = malloc(sizeof(MPI_Request) * (size_t)(many + 1));
        fill_bytes(buffer, (size_t)bytes, 30);
        for (int i = 0; i <= many; i++) OK(MPI_Issend(buffer, bytes, MPI_BYTE, partner, 21, host, &requests[i]));
        for (int i = 0; i < many; i++) OK(MPI_Cancel(&requests[i]));
        for (int i = 0; i < many; i++) {
            MPI_Status status;
            int cancelled;
            OK(MPI_Wait(&requests[i], &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            EXPECT_INT(cancelled, 1);
        }
        set_flag(1);
        OK(MPI_Wait(&requests[many], MPI_STATUS_IGNORE));
        free(requests);
    } else {
        int found;
        char* in = malloc(kLongest);
        await_flag(1);
        OK(MPI_Recv(in, bytes, MPI_BYTE, many % 2 ? partner : MPI_ANY_SOURCE, 21, host, MPI_STATUS_IGNORE));
        EXPECT_INT(first_wrong_byte(in, (size_t)bytes, 30), -1);
        OK(MPI_Iprobe(MPI_ANY_SOURCE, 21, host, &found, MPI_STATUS_IGNORE));
        EXPECT_INT(found, 0);
        free(in);
    }
    barrier_of_two();
}

// A message that a matched probe has returned is not cancelled, and MPI_Wait on its send returns before MPI_Mrecv.
static void receiver_has_probed(int bytes) {
    if (!is_pair) return;
    set_flag(0);
    barrier_of_two();
    if (host_rank % 2 == 0) {
        MPI_Request request;
        MPI_Status status;
        int cancelled, done;
        fill_bytes(buffer, (size_t)bytes, 31);
        OK(MPI_Issend(buffer, bytes, MPI_BYTE, partner, 22, host, &request));
        await_flag(1);
        OK(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        EXPECT_INT(done, 0);
        OK(MPI_Cancel(&request));
        OK(MPI_Wait(&request, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        EXPECT_INT(cancelled, 0);
        memset(buffer, 0x55, kLongest);
        set_flag(2);
    } else {
        MPI_Message message;
        char* in = malloc(kLongest);
        OK(MPI_Mprobe(partner, 22, host, &message, MPI_STATUS_IGNORE));
        set_flag(1);
        await_flag(2);
        OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        EXPECT_INT(first_wrong_byte(in, (size_t)bytes, 31), -1);
        free(in);
    }
    barrier_of_two();
}

// One process cancels while its partner matches: by a posted receive, by a later receive, or by a matched probe. Exactly one of them
// succeeds.
static void exactly_one(void) {
    enum { kTurns = 600, kBytes = 20000 };
    if (!is_pair) return;
    uint64_t state = start_seed(3) + (uint64_t)host_rank;
    char* in = malloc(kBytes);
    set_flag(0);
    for (int turn = 0; turn < kTurns; turn++) {
        const int bytes = turn % 2 ? 1 : kBytes, source = turn % 4 < 2 ? partner : MPI_ANY_SOURCE;
        MPI_Request request;
        MPI_Status status;
        int cancelled, gone;
        barrier_of_two();
        if (host_rank % 2 == 0) {
            fill_bytes(buffer, (size_t)bytes, (uint64_t)turn);
            OK(MPI_Issend(buffer, bytes, MPI_BYTE, partner, 23, host, &request));
            set_flag(turn + 1);
            for (uint64_t i = random_below(&state, 1ull << turn % 20); i > 0; i--) __asm__ volatile("" ::: "memory");
            if (turn / 20 % 2) sched_yield();  // lets the partner run if both processes share one core
            OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            memset(buffer, 0x55, kLongest);
            OK(MPI_Send(&cancelled, 1, MPI_INT, partner, 24, host));
            continue;
        }
        MPI_Message message = MPI_MESSAGE_NULL;
        int found = 0;
        if (turn % 3 == 0) OK(MPI_Irecv(in, bytes, MPI_BYTE, source, 23, host, &request));
        await_flag(turn + 1);
        if (turn % 3 == 1) OK(MPI_Irecv(in, bytes, MPI_BYTE, source, 23, host, &request));
        if (turn % 3 == 2) {
            OK(MPI_Improbe(source, 23, host, &found, &message, MPI_STATUS_IGNORE));
            OK(MPI_Recv(&gone, 1, MPI_INT, partner, 24, host, MPI_STATUS_IGNORE));
            if (!found) OK(MPI_Improbe(source, 23, host, &found, &message, MPI_STATUS_IGNORE));
            EXPECT_INT(found, !gone);
            if (found) OK(MPI_Mrecv(in, bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE));
        } else {
            OK(MPI_Recv(&gone, 1, MPI_INT, partner, 24, host, MPI_STATUS_IGNORE));
            if (gone) OK(MPI_Cancel(&request));
            OK(MPI_Wait(&request, &status));
            OK(MPI_Test_cancelled(&status, &cancelled));
            EXPECT_INT(cancelled, gone);
        }
        if (!gone) EXPECT_INT(first_wrong_byte(in, (size_t)bytes, (uint64_t)turn), -1);
    }
    barrier_of_two();
    free(in);
}

static void persistent(int bytes) {
    MPI_Request request;
    OK(MPI_Ssend_init(buffer, bytes, MPI_BYTE, to, 3, MPI_COMM_WORLD, &request));
    for (uint64_t turn = 0; turn < 5; turn++) {
        fill_bytes(buffer, (size_t)bytes, turn);
        OK(MPI_Start(&request));
        const int will_come = given_up(&request);
        EXPECT_INT(will_come, 0);
        receive(bytes, turn, 3, neighbour_sent(will_come));
    }
    OK(MPI_Request_free(&request));
}

// A synchronous or long message to this process itself is cancelled before it is received. The messages sent before and after it stay
// intact.
static void to_oneself(int synchronous, int bytes) {
    MPI_Request requests[3];
    MPI_Status status;
    int done, cancelled, flag;
    char* in = malloc(kLongest);
    for (int i = 0; i < 3; i++) {
        fill_bytes(buffer, (size_t)bytes, 20);
        if (synchronous)
            OK(MPI_Issend(buffer, bytes, MPI_BYTE, rank, 7 + i, MPI_COMM_WORLD, &requests[i]));
        else
            OK(MPI_Isend(buffer, bytes, MPI_BYTE, rank, 7 + i, MPI_COMM_WORLD, &requests[i]));
    }
    OK(MPI_Cancel(&requests[1]));
    OK(MPI_Request_get_status(requests[1], &done, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(done, 1);
    EXPECT_INT(cancelled, 1);
    OK(MPI_Wait(&requests[1], &status));
    OK(MPI_Iprobe(rank, 8, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    EXPECT_INT(flag, 0);
    for (int i = 0; i < 3; i += 2) {
        OK(MPI_Recv(in, kLongest, MPI_BYTE, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        EXPECT_INT(status.MPI_TAG, 7 + i);
        EXPECT_INT(first_wrong_byte(in, (size_t)bytes, 20), -1);
        OK(MPI_Wait(&requests[i], &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        EXPECT_INT(cancelled, 0);
    }
    // A message that MPI_Mprobe has returned is received despite MPI_Cancel.
    MPI_Message message;
    fill_bytes(buffer, (size_t)bytes, 21);
    OK(MPI_Issend(buffer, bytes, MPI_BYTE, rank, 7, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Mprobe(rank, 7, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE));
    OK(MPI_Cancel(&requests[0]));
    OK(MPI_Mrecv(in, kLongest, MPI_BYTE, &message, MPI_STATUS_IGNORE));
    EXPECT_INT(first_wrong_byte(in, (size_t)bytes, 21), -1);
    OK(MPI_Wait(&requests[0], &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    EXPECT_INT(cancelled, 0);
    free(in);
}

// Posts more sends than any path has space for and cancels all: each must be cancelled or arrive.
static void queued(void) {
    enum { kMany = 2000, kBytes = 4000 };
    MPI_Request requests[kMany];
    int wanted[kMany], theirs[kMany];
    fill_bytes(buffer, kBytes, 9);
    for (int i = 0; i < kMany; i++) OK(MPI_Isend(buffer, kBytes, MPI_BYTE, to, 4, MPI_COMM_WORLD, &requests[i]));
    for (int i = 0; i < kMany; i++) OK(MPI_Cancel(&requests[i]));
    for (int i = 0; i < kMany; i++) {
        MPI_Status status;
        int cancelled;
        OK(MPI_Wait(&requests[i], &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        wanted[i] = !cancelled;
    }
    memset(buffer, 0x55, kLongest);
    MPI_Request send;
    OK(MPI_Isend(wanted, kMany, MPI_INT, to, 5, MPI_COMM_WORLD, &send));
    OK(MPI_Recv(theirs, kMany, MPI_INT, from, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < kMany; i++) receive(kBytes, 9, 4, theirs[i]);
    OK(MPI_Wait(&send, MPI_STATUS_IGNORE));
}

// The receiver reads the sender's memory while the sender cancels: a message that arrives must still be complete.
static void at_the_same_time(void) {
    uint64_t state = start_seed(1) + (uint64_t)rank;
    char* in = malloc(kLongest);
    for (uint64_t turn = 0; turn < 300; turn++) {
        MPI_Request send, receive_one;
        int cancelled, theirs;
        fill_bytes(buffer, kLongest, turn);
        OK(MPI_Isend(buffer, kLongest, MPI_BYTE, to, 6, MPI_COMM_WORLD, &send));
        OK(MPI_Irecv(in, kLongest, MPI_BYTE, from, 6, MPI_COMM_WORLD, &receive_one));
        if (random_below(&state, 3) == 0) {
            int flag;
            OK(MPI_Test(&receive_one, &flag, MPI_STATUS_IGNORE));
        }
        usleep((useconds_t)random_below(&state, 300));
        MPI_Status status;
        OK(MPI_Cancel(&send));
        OK(MPI_Wait(&send, &status));
        OK(MPI_Test_cancelled(&status, &cancelled));
        memset(buffer, 0x55, kLongest);
        theirs = neighbour_sent(!cancelled);
        if (!theirs) OK(MPI_Cancel(&receive_one));
        OK(MPI_Wait(&receive_one, MPI_STATUS_IGNORE));
        if (theirs) EXPECT_INT(first_wrong_byte(in, kLongest, turn), -1);
    }
    free(in);
}

int main(int argc, char** argv) {
    int size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    to = (rank + 1) % size, from = (rank + size - 1) % size;
    buffer = malloc(kLongest);
    open_pairs();
    for (int bytes = 1; bytes <= kLongest; bytes *= 32) {
        receiver_is_away(bytes, 1);
        receiver_is_away(bytes, 200);
        receiver_has_probed(bytes);
        unmatched(0, bytes);
        unmatched(1, bytes);
        persistent(bytes);
        to_oneself(1, bytes);
        matched(bytes);
    }
    race();
    exactly_one();
    close_pairs();
    to_oneself(0, kLongest);
    queued();
    at_the_same_time();
    free(buffer);
    OK(MPI_Finalize());
    return 0;
}
