// A PE without memory for its part of a team or of the symmetric heap's tables must report it and end, and its job with it; none may hang.
// Usage: no_memory team|heap
#include <errno.h>
#include <shmem.h>
#include <stdlib.h>
#include <string.h>

static volatile int refused;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // left out: a sanitizer's allocator cannot be replaced
extern void* __libc_malloc(size_t);

/// Replaces malloc in the program and in the library.
void* malloc(size_t bytes) {
    if (!refused) return __libc_malloc(bytes);
    errno = ENOMEM;
    return NULL;
}
#endif

int main(int argc, char** argv) {
    shmem_init();
    refused = argc > 1 && shmem_my_pe() == 1;
    for (int i = 0; argc > 1 && i < 100; i++) {
        shmem_team_t made;
        if (strcmp(argv[1], "team") == 0)
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &made);
        else
            shmem_malloc(8);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
