// Threads open and close MPI sessions; all calls must succeed. The first sessions of the process are opened concurrently, and again
// whenever all were closed. The first start happens only once per process, so the test runs in several processes.
#include <pthread.h>

#include "check.h"

#define THREADS 8
#define ROUNDS 200

static pthread_barrier_t gate;

static void* open_and_close(void* unused) {
    pthread_barrier_wait(&gate);
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 50 == 0) pthread_barrier_wait(&gate);
        MPI_Session session;
        OK(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session));
        OK(MPI_Session_finalize(&session));
    }
    return unused;
}

int main(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&gate, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) CHECK(!pthread_create(&threads[i], NULL, open_and_close, NULL));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    return 0;
}
