// Tests Wait and Test for one, any, some and all requests, with null and inactive ones, and MPI_Request_get_status.
#include "check.h"

static int rank, size;
enum { kCount = 64 };

static void start_all(MPI_Request* requests, int* in, const int* out) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int i = 0; i < kCount; i++) OK(MPI_Irecv(&in[i], 1, MPI_INT, from, i, MPI_COMM_WORLD, &requests[i]));
    for (int i = kCount - 1; i >= 0; i--) OK(MPI_Send(&out[i], 1, MPI_INT, to, i, MPI_COMM_WORLD));
}

static void check_all(const int* in) {
    int from = (rank + size - 1) % size;
    for (int i = 0; i < kCount; i++) EXPECT_INT(in[i], from * 1000 + i);
}

static void any(const int* out, int testing) {
    MPI_Request requests[kCount];
    int in[kCount], seen[kCount] = {0}, index, flag;
    MPI_Status status;
    start_all(requests, in, out);
    for (int done = 0; done < kCount;) {
        if (testing) {
            OK(MPI_Testany(kCount, requests, &index, &flag, &status));
            if (!flag) {
                EXPECT_INT(index, MPI_UNDEFINED);
                continue;
            }
        } else {
            OK(MPI_Waitany(kCount, requests, &index, &status));
        }
        CHECK(index >= 0 && index < kCount && !seen[index], "index %d", index);
        EXPECT_INT(status.MPI_TAG, index);
        CHECK(requests[index] == MPI_REQUEST_NULL);
        seen[index] = 1;
        done++;
    }
    check_all(in);
    if (testing) {
        OK(MPI_Testany(kCount, requests, &index, &flag, &status));
        EXPECT_INT(flag, 1);
    } else {
        OK(MPI_Waitany(kCount, requests, &index, &status));
    }
    EXPECT_INT(index, MPI_UNDEFINED);
    EXPECT_INT(status.MPI_SOURCE, MPI_ANY_SOURCE);
}

static void some(const int* out, int testing) {
    MPI_Request requests[kCount];
    int in[kCount], indices[kCount], seen[kCount] = {0}, count;
    MPI_Status statuses[kCount];
    start_all(requests, in, out);
    for (int done = 0; done < kCount;) {
        if (testing)
            OK(MPI_Testsome(kCount, requests, &count, indices, statuses));
        else
            OK(MPI_Waitsome(kCount, requests, &count, indices, statuses));
        CHECK(count >= (testing ? 0 : 1) && count <= kCount, "%d", count);
        for (int i = 0; i < count; i++) {
            CHECK(!seen[indices[i]], "index %d twice", indices[i]);
            EXPECT_INT(statuses[i].MPI_TAG, indices[i]);
            seen[indices[i]] = 1;
        }
        done += count;
    }
    check_all(in);
    if (testing)
        OK(MPI_Testsome(kCount, requests, &count, indices, statuses));
    else
        OK(MPI_Waitsome(kCount, requests, &count, indices, statuses));
    EXPECT_INT(count, MPI_UNDEFINED);
}

static void all(const int* out, int testing) {
    MPI_Request requests[kCount + 2];
    int in[kCount], flag = 0, count;
    MPI_Status statuses[kCount + 2];
    start_all(requests + 1, in, out);
    requests[0] = requests[kCount + 1] = MPI_REQUEST_NULL;
    if (testing)
        while (!flag) OK(MPI_Testall(kCount + 2, requests, &flag, statuses));
    else
        OK(MPI_Waitall(kCount + 2, requests, statuses));
    check_all(in);
    EXPECT_INT(statuses[0].MPI_SOURCE, MPI_ANY_SOURCE);
    EXPECT_INT(statuses[0].MPI_TAG, MPI_ANY_TAG);
    OK(MPI_Get_count(&statuses[0], MPI_INT, &count));
    EXPECT_INT(count, 0);
    for (int i = 0; i < kCount; i++) EXPECT_INT(statuses[i + 1].MPI_TAG, i);
    for (int i = 0; i < kCount + 2; i++) CHECK(requests[i] == MPI_REQUEST_NULL, "%d", i);
    OK(MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE));
    OK(MPI_Testall(0, NULL, &flag, MPI_STATUSES_IGNORE));
    EXPECT_INT(flag, 1);
}

// MPI_Testall completes all requests or none: while one is incomplete, the complete ones keep their handles.
static void all_or_none(void) {
    MPI_Request requests[2];
    int in[2] = {-1, -1}, flag, value = 5;
    OK(MPI_Irecv(&in[0], 1, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]));
    OK(MPI_Irecv(&in[1], 1, MPI_INT, rank, 2, MPI_COMM_WORLD, &requests[1]));
    OK(MPI_Send(&value, 1, MPI_INT, rank, 1, MPI_COMM_WORLD));
    OK(MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE));
    EXPECT_INT(flag, 0);
    CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
    OK(MPI_Send(&value, 1, MPI_INT, rank, 2, MPI_COMM_WORLD));
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    EXPECT_INT(in[0] + in[1], 10);
}

static void status_only(void) {
    MPI_Request request, null = MPI_REQUEST_NULL;
    MPI_Status status;
    int value = rank, in = -1, flag, count;
    OK(MPI_Request_get_status(null, &flag, &status));
    EXPECT_INT(flag, 1);
    EXPECT_INT(status.MPI_SOURCE, MPI_ANY_SOURCE);
    OK(MPI_Irecv(&in, 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &request));
    OK(MPI_Request_get_status(request, &flag, &status));
    EXPECT_INT(flag, 0);
    OK(MPI_Send(&value, 1, MPI_INT, rank, 3, MPI_COMM_WORLD));
    do OK(MPI_Request_get_status(request, &flag, &status));
    while (!flag);
    EXPECT_INT(status.MPI_TAG, 3);
    OK(MPI_Get_count(&status, MPI_INT, &count));
    EXPECT_INT(count, 1);
    CHECK(request != MPI_REQUEST_NULL);
    OK(MPI_Wait(&request, &status));
    EXPECT_INT(status.MPI_TAG, 3);
#if MPI_AT_LEAST(4, 1)
    MPI_Request two[2];
    MPI_Status statuses[2];
    int index, indices[2], ins[2];
    for (int i = 0; i < 2; i++) OK(MPI_Irecv(&ins[i], 1, MPI_INT, rank, 4 + i, MPI_COMM_WORLD, &two[i]));
    OK(MPI_Request_get_status_any(2, two, &index, &flag, &status));
    EXPECT_INT(flag, 0);
    OK(MPI_Send(&value, 1, MPI_INT, rank, 5, MPI_COMM_WORLD));
    do OK(MPI_Request_get_status_any(2, two, &index, &flag, &status));
    while (!flag);
    EXPECT_INT(index, 1);
    OK(MPI_Request_get_status_some(2, two, &count, indices, statuses));
    EXPECT_INT(count, 1);
    EXPECT_INT(indices[0], 1);
    OK(MPI_Request_get_status_all(2, two, &flag, statuses));
    EXPECT_INT(flag, 0);
    OK(MPI_Send(&value, 1, MPI_INT, rank, 4, MPI_COMM_WORLD));
    do OK(MPI_Request_get_status_all(2, two, &flag, statuses));
    while (!flag);
    EXPECT_INT(statuses[0].MPI_TAG, 4);
    EXPECT_INT(statuses[1].MPI_TAG, 5);
    OK(MPI_Waitall(2, two, statuses));
#endif
}

// A request freed while it is active still delivers its message.
static void free_active(void) {
    int to = (rank + 1) % size, from = (rank + size - 1) % size, bytes = 400000;
    char *out = malloc(bytes), *in = malloc(bytes);
    MPI_Request request;
    fill_bytes(out, bytes, rank);
    OK(MPI_Isend(out, bytes, MPI_BYTE, to, 9, MPI_COMM_WORLD, &request));
    OK(MPI_Request_free(&request));
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Recv(in, bytes, MPI_BYTE, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(first_wrong_byte(in, bytes, from) < 0);
    OK(MPI_Barrier(MPI_COMM_WORLD));
    free(in);
    free(out);
}

int main(int argc, char** argv) {
    int out[kCount];
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    for (int i = 0; i < kCount; i++) out[i] = rank * 1000 + i;
    for (int testing = 0; testing < 2; testing++) {
        any(out, testing);
        some(out, testing);
        all(out, testing);
    }
    all_or_none();
    status_only();
    free_active();
    OK(MPI_Finalize());
    return 0;
}
