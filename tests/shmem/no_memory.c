// A PE without memory for its part of a team or of the symmetric heap's tables must report it and end, and its job with it; none may hang.
// A PE that is refused one allocation of a collective operation, again and again, completes it with memory kept in reserve.
// Usage: no_memory team|heap|often
#include <errno.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile int refused;                                         // whether all allocations fail
static volatile int refused_in;                                      // number of the next allocation that fails; 0: none
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // left out: a sanitizer's allocator cannot be replaced
extern void* __libc_malloc(size_t);

/// Replaces malloc in the program and in the library.
void* malloc(size_t bytes) {
    if (!refused && (refused_in == 0 || --refused_in > 0)) return __libc_malloc(bytes);
    errno = ENOMEM;
    return NULL;
}
#endif

static void expect(int is, int wanted, const char* what) {
    if (is == wanted) return;
    fprintf(stderr, "%s: PE %d has %d, wanted %d\n", what, shmem_my_pe(), is, wanted);
    shmem_global_exit(1);
}

/// Refuses PE 1 the n-th allocation of each call, more often than the reserve has blocks.
static void refuse_often(void) {
    enum { kCalls = 30, kMost = 8 };
    const int me = shmem_my_pe(), n = shmem_n_pes();
    int* const from = shmem_malloc(2 * kMost * sizeof *from);
    int* const to = shmem_malloc(2 * kMost * sizeof *to);
    for (int i = 0; i < kCalls; i++) {
        for (int pe = 0; pe < n; pe++) from[2 * pe] = from[2 * pe + 1] = 100 * me + pe + i;
        shmem_barrier_all();
        if (me == 1) refused_in = 1 + i % 2;
        shmem_int_collect(SHMEM_TEAM_WORLD, to, from, 1);
        refused_in = 0;
        for (int pe = 0; pe < n; pe++) expect(to[pe], 100 * pe + i, "shmem_int_collect");
        shmem_barrier_all();
        if (me == 1) refused_in = 1 + i % 2;
        shmem_int_alltoalls(SHMEM_TEAM_WORLD, to, from, 2, 2, 1);
        refused_in = 0;
        for (int pe = 0; pe < n; pe++) expect(to[2 * pe], 100 * pe + me + i, "shmem_int_alltoalls");
    }
    shmem_barrier_all();
}

int main(int argc, char** argv) {
    shmem_init();
    if (argc > 1 && strcmp(argv[1], "often") == 0) {
        refuse_often();
        shmem_finalize();
        return 0;
    }
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
