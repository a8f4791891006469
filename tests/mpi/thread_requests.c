// Several threads test one request variable. Each message is completed once, and the other threads see a null request with an empty status.
// The result is as if the calls were made one after the other (MPI 5.0 section 11.6).
#include <pthread.h>

#include "check.h"

enum { kThreads = 4, kMessages = 300 };

static int rank, size, value, completed, over;
static int seen[kMessages];
static MPI_Request request;

static void post(void) { OK(MPI_Irecv(&value, 1, MPI_INT, (rank + size - 1) % size, 1, MPI_COMM_WORLD, &request)); }

static int try(int way, MPI_Status* status) {
    int flag = 0, index = 0, count = 0;
    if (way == 0) OK(MPI_Test(&request, &flag, status));
    if (way == 1) OK(MPI_Testall(1, &request, &flag, status));
    if (way == 2) OK(MPI_Testany(1, &request, &index, &flag, status));
    if (way == 3) OK(MPI_Testsome(1, &request, &count, &index, status));
    return (flag || count == 1) && status->MPI_SOURCE != MPI_ANY_SOURCE;
}

static void* tester(void* unused) {
    for (int i = 0; !__atomic_load_n(&over, __ATOMIC_ACQUIRE); i++) {
        MPI_Status status;
        memset(&status, 0, sizeof status);
        status.MPI_SOURCE = MPI_ANY_SOURCE;
        if (!try(i % 64 ? 0 : i / 64 % 4, &status)) continue;
        CHECK(value >= 0 && value < kMessages, "got %d", value);
        EXPECT_INT(__atomic_fetch_add(&seen[value], 1, __ATOMIC_RELAXED), 0);
        if (__atomic_add_fetch(&completed, 1, __ATOMIC_RELAXED) < kMessages)
            post();
        else
            __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    }
    return unused;
}

static void* sender(void* unused) {
    for (int i = 0; i < kMessages; i++) OK(MPI_Send(&i, 1, MPI_INT, (rank + 1) % size, 1, MPI_COMM_WORLD));
    return unused;
}

int main(int argc, char** argv) {
    pthread_t threads[kThreads + 1];
    int provided;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    post();
    for (int i = 0; i <= kThreads; i++) CHECK(pthread_create(&threads[i], NULL, i ? tester : sender, NULL) == 0);
    for (int i = 0; i <= kThreads; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    OK(MPI_Finalize());
    return 0;
}
