// MPI_Cancel of sends: each is cancelled or completes, and MPI_Wait on it returns though nobody receives; a synchronous one is
// cancelled then. What completes is received as it was when it was sent, though the buffer is used for something else at once.
#include "check.h"

#include <unistd.h>

enum { kLongest = 1 << 20 };
static char* buffer;
static int rank, to, from;

// Cancels and waits; nobody receives meanwhile. Whether the message is still to be received.
static int given_up(MPI_Request* request) {
    MPI_Status status;
    int cancelled;
    OK(MPI_Cancel(request));
    OK(MPI_Wait(request, &status));
    OK(MPI_Test_cancelled(&status, &cancelled));
    memset(buffer, 0x55, kLongest);
    return !cancelled;
}

// Receives what the neighbour has not cancelled.
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

// One that is matched while it is cancelled completes, and one that was probed for can't be taken back.
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

// Many at once, of which the receiver takes some meanwhile, in the order in which they were sent.
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
        CHECK(number > last, "%d was received before %d", last, number);
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

// A synchronous or long message to oneself is taken back while nobody has received it, and what was sent around it is not touched.
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
    // One that MPI_Mprobe has taken is received, whatever is said of it.
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

// More than any path holds.
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

// The receiver reads the sender's memory while the sender takes it back: what arrives is the message all the same.
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
    for (int bytes = 1; bytes <= kLongest; bytes *= 32) {
        unmatched(0, bytes);
        unmatched(1, bytes);
        persistent(bytes);
        to_oneself(1, bytes);
        matched(bytes);
    }
    race();
    to_oneself(0, kLongest);
    queued();
    at_the_same_time();
    free(buffer);
    OK(MPI_Finalize());
    return 0;
}
