/* Accesses with a known profile: through OpenSHMEM and in an MPI window, always to the right neighbor, in phase "accesses". profile_test.py
 * checks the numbers. */
#include <mpi-ext.h>
#include <mpi.h>
#include <shmem.h>
#include <string.h>

static long variable;

static void by_shmem(int right, char* heap) {
    char block[256] = {0};
    long* words = (long*)heap;
    shmem_putmem(heap + 1024, block, 100, right);
    shmem_putmem_nbi(heap + 1024, block, 100, right);
    shmem_char_iput(heap + 1024, block, 2, 1, 50, right);
    shmem_long_p(&variable, 1, right);
    shmem_getmem(block, heap + 2048, 40, right);
    shmem_char_iget(block, heap + 2048, 1, 3, 20, right);
    shmem_long_g(words + 1, right);
    shmem_long_atomic_add(words, 1, right);
    shmem_long_atomic_fetch(words, right);
    shmem_long_atomic_compare_swap(words, -1, 1, right);
    shmem_quiet();
}

static void by_window(int right, MPI_Win window) {
    char block[64] = {0};
    long one = 1, old;
    MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
    MPI_Put(block, 64, MPI_BYTE, right, 64, 64, MPI_BYTE, window);
    MPI_Get(block, 16, MPI_BYTE, right, 128, 16, MPI_BYTE, window);
    MPI_Fetch_and_op(&one, &old, MPI_LONG, right, 0, MPI_SUM, window);
    MPI_Accumulate(&one, 1, MPI_LONG, right, 0, 1, MPI_LONG, MPI_SUM, window);
    MPI_Win_unlock(right, window);
}

int main(void) {
    MPI_Init(NULL, NULL);
    shmem_init();
    const int right = (shmem_my_pe() + 1) % shmem_n_pes();
    char* heap = shmem_calloc(4096, 1);
    MPI_Win window;
    void* base;
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    memset(base, 0, 4096);
    MPI_Barrier(MPI_COMM_WORLD);
    MPIX_Phase_begin(MPI_COMM_WORLD, "accesses");
    by_shmem(right, heap);
    by_window(right, window);
    MPIX_Phase_begin(MPI_COMM_WORLD, "after");
    MPI_Win_free(&window);
    shmem_free(heap);
    shmem_finalize();
    MPI_Finalize();
    return 0;
}
