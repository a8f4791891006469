// Threads create and free communicators at the same time, each from its own parent or with its own tag.
#include <pthread.h>

#include "check.h"

#define THREADS 4
static MPI_Comm base[THREADS];
static int rank, size;
static void* work(void* p) {
    long t = (long)p;
    for (int i = 0; i < 100; i++) {
        MPI_Comm d, s;
        int me, n, sum;
        MPI_Comm_dup(base[t], &d);
        MPI_Comm_split(d, rank % 2, rank, &s);
        MPI_Comm_rank(s, &me);
        MPI_Comm_size(s, &n);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, s);
        EXPECT_INT(sum, n * (n - 1) / 2);
        MPI_Group g;
        MPI_Comm_group(d, &g);
        MPI_Comm c;
        MPI_Comm_create_group(MPI_COMM_WORLD, g, t, &c);
        MPI_Group_free(&g);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, c);
        EXPECT_INT(sum, size * (size - 1) / 2);
        MPI_Comm_free(&c);
        MPI_Comm_free(&s);
        MPI_Comm_free(&d);
    }
    return NULL;
}
int main(int argc, char** argv) {
    int p;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &p);
    if (p < MPI_THREAD_MULTIPLE) {
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    pthread_t th[THREADS];
    for (long i = 0; i < THREADS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &base[i]);
    for (long i = 0; i < THREADS; i++) pthread_create(&th[i], 0, work, (void*)i);
    for (long i = 0; i < THREADS; i++) pthread_join(th[i], 0);
    for (long i = 0; i < THREADS; i++) MPI_Comm_free(&base[i]);
    MPI_Finalize();
}
