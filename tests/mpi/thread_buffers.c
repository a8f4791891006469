// Threads detach one attached buffer while a message waits in it: one gets the buffer, the other an error, and a third, which only flushes
// the buffer, returns too.
#include <pthread.h>
#include <unistd.h>

#include "check.h"

enum { kInts = 200000 };

static int in[kInts], out[kInts], calling, got, refused;

static void* detach(void* buffer) {
    void* back = NULL;
    int size;
    __atomic_add_fetch(&calling, 1, __ATOMIC_RELAXED);
    if (MPI_Buffer_detach(&back, &size) != MPI_SUCCESS) {
        __atomic_add_fetch(&refused, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    CHECK(back == buffer, "the detach returned another buffer");
    __atomic_add_fetch(&got, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void* flush(void* unused) {
    __atomic_add_fetch(&calling, 1, __ATOMIC_RELAXED);
#if MPI_AT_LEAST(4, 1)
    OK(MPI_Buffer_flush());
#endif
    return unused;
}

int main(int argc, char** argv) {
    void* (*const tasks[])(void*) = {detach, flush, detach};
    const int size = sizeof out + MPI_BSEND_OVERHEAD;
    pthread_t threads[3];
    int provided, rank;
    OK(MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    void* buffer = malloc((size_t)size);
    OK(MPI_Buffer_attach(buffer, size));
    out[kInts - 1] = 42;
    OK(MPI_Bsend(out, kInts, MPI_INT, rank, 0, MPI_COMM_WORLD));
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&threads[i], NULL, tasks[i], buffer) == 0);
    while (__atomic_load_n(&calling, __ATOMIC_RELAXED) < 3) usleep(1000);
    OK(MPI_Recv(in, kInts, MPI_INT, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    EXPECT_INT(in[kInts - 1], 42);
    for (int i = 0; i < 3; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    EXPECT_INT(got, 1);
    EXPECT_INT(refused, 1);
    free(buffer);
    OK(MPI_Finalize());
    return 0;
}
