// Integer sort: keys are distributed by value. Each PE counts its keys for each other PE, an all-to-all exchanges the counts, and the keys
// are put to their owners at positions that a prefix sum has computed. PE 0 then sorts all keys serially and compares. oshrun -n 4 sort
// [keys on each PE]
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_KEY (1u << 20)

static unsigned key_of(unsigned long i) {
    i = (i + 1) * 0x9e3779b97f4a7c15ul;
    i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9ul;
    return (unsigned)(i >> 40) % MOST_KEY;
}

static int compare(const void* a, const void* b) {
    const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
    return (x > y) - (x < y);
}

int main(int argc, char** argv) {
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes();
    const size_t each = argc > 1 ? (size_t)atol(argv[1]) : 20000, all = each * (size_t)pes;
    unsigned* sorted = shmem_malloc(all * sizeof *sorted);  // room for all keys, in case one PE receives them all
    long* counts = shmem_calloc((size_t)pes, sizeof *counts);
    long* places = shmem_calloc((size_t)pes, sizeof *places);  // start of this PE's keys on each PE
    long* total = shmem_calloc(1, sizeof *total);
    unsigned* keys = malloc(each * sizeof *keys);
    for (size_t i = 0; i < each; i++) keys[i] = key_of((unsigned long)me * each + i);
    qsort(keys, each, sizeof *keys, compare);
    const unsigned width = (MOST_KEY + (unsigned)pes - 1) / (unsigned)pes;
    for (size_t i = 0; i < each; i++) counts[keys[i] / width]++;
    shmem_long_sum_exscan(SHMEM_TEAM_WORLD, places, counts, (size_t)pes);
    size_t from = 0;
    for (int pe = 0; pe < pes; pe++) {
        shmem_uint_put_nbi(sorted + places[pe], keys + from, (size_t)counts[pe], pe);
        shmem_long_atomic_add(total, counts[pe], pe);
        from += (size_t)counts[pe];
    }
    shmem_barrier_all();
    qsort(sorted, (size_t)*total, sizeof *sorted, compare);
    shmem_barrier_all();
    int wrong = 0;
    if (me == 0) {
        unsigned* reference = malloc(all * sizeof *reference);
        for (size_t i = 0; i < all; i++) reference[i] = key_of(i);
        qsort(reference, all, sizeof *reference, compare);
        size_t at = 0;
        for (int pe = 0; pe < pes; pe++) {
            const long there = shmem_long_g(total, pe);
            unsigned* part = malloc((size_t)there * sizeof *part + 1);
            shmem_uint_get(part, sorted, (size_t)there, pe);
            for (long i = 0; i < there; i++) wrong += at >= all || part[i] != reference[at], at++;
            free(part);
        }
        wrong += at != all;
        printf("%zu keys on %d PEs: %s\n", all, pes, wrong ? "WRONG" : "as in the serial run");
        free(reference);
    }
    shmem_barrier_all();
    free(keys);
    shmem_finalize();
    return wrong != 0;
}
