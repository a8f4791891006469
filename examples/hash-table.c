/* A hash table that all processes update concurrently: each has a slice of it in a window. A key gets its slot by MPI_Compare_and_swap, and
 * its count is incremented by MPI_Fetch_and_op. No process has to serve requests of others.
 *
 *     mpiexec -n 4 ./hash-table [words each] [different words] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kEmpty = 0 };

typedef struct {
    int64_t key, count;
} Slot;

typedef struct {
    MPI_Win window;
    Slot* mine;
    int64_t slots; /* number of slots in each process's slice */
    int size;
} Table;

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Returns the i-th word that a process reads. key_of() returns its key in the table, which is never kEmpty. */
static int64_t word(int rank, long i, long different) {
    return (int64_t)(mix((uint64_t)rank << 40 | (uint64_t)i) % (uint64_t)different);
}
static int64_t key_of(int64_t word) { return (int64_t)(mix((uint64_t)word) | 1); }
static int owner_of(const Table* t, int64_t key) { return (int)(((uint64_t)key >> 1) % (uint64_t)t->size); }

static Table make_table(int64_t slots) {
    Table t = {.slots = slots};
    MPI_Comm_size(MPI_COMM_WORLD, &t.size);
    MPI_Win_allocate((MPI_Aint)(slots * (int64_t)sizeof(Slot)), sizeof(int64_t), MPI_INFO_NULL, MPI_COMM_WORLD, &t.mine,
                     &t.window);
    for (int64_t i = 0; i < slots; ++i) t.mine[i] = (Slot){kEmpty, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, t.window);
    return t;
}

/* Increments the count of `key`. Aborts if the slice is full: the caller must make it large enough. */
static void add(Table* t, int64_t key) {
    const int owner = owner_of(t, key);
    const int64_t one = 1, empty = kEmpty;
    for (int64_t tried = 0, at = (int64_t)(mix((uint64_t)key) % (uint64_t)t->slots); tried < t->slots;
         ++tried, at = (at + 1) % t->slots) {
        int64_t there, before;
        MPI_Compare_and_swap(&key, &empty, &there, MPI_INT64_T, owner, 2 * at, t->window);
        MPI_Win_flush(owner, t->window);
        if (there != kEmpty && there != key) continue;
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, owner, 2 * at + 1, MPI_SUM, t->window);
        MPI_Win_flush(owner, t->window);
        return;
    }
    fprintf(stderr, "hash-table: the slice of process %d is full\n", owner);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Recomputes all counts serially and returns how many keys of this process's slice are wrong or missing. */
static long check(const Table* t, int rank, long words, long different, long* keys) {
    int64_t* counts = calloc((size_t)different, sizeof *counts);
    long wrong = 0, expected = 0;
    for (int from = 0; from < t->size; ++from)
        for (long i = 0; i < words; ++i) ++counts[word(from, i, different)];
    for (long w = 0; w < different; ++w) {
        const int64_t key = key_of(w);
        if (counts[w] == 0 || owner_of(t, key) != rank) continue;
        ++expected;
        int64_t at = (int64_t)(mix((uint64_t)key) % (uint64_t)t->slots);
        while (t->mine[at].key != key && t->mine[at].key != kEmpty) at = (at + 1) % t->slots;
        wrong += t->mine[at].key != key || t->mine[at].count != counts[w];
    }
    *keys = 0;
    for (int64_t i = 0; i < t->slots; ++i) *keys += t->mine[i].key != kEmpty;
    free(counts);
    return wrong + labs(*keys - expected);
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    const long words = argc > 1 ? atol(argv[1]) : 100000, different = argc > 2 ? atol(argv[2]) : 20000;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    Table t = make_table(2 * (different / size) + 1000);

    double time = MPI_Wtime();
    for (long i = 0; i < words; ++i) add(&t, key_of(word(rank, i, different)));
    MPI_Barrier(MPI_COMM_WORLD);
    time = MPI_Wtime() - time;
    MPI_Win_sync(t.window);

    long found[2], all[2];
    found[1] = check(&t, rank, words, different, &found[0]);
    MPI_Reduce(found, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%ld words, %ld of them different: %s; %.2f million a second\n", words * size, all[0],
               all[1] ? "WRONG" : "each counted right", 1e-6 * (double)(words * size) / time);
    MPI_Win_unlock_all(t.window);
    MPI_Win_free(&t.window);
    MPI_Finalize();
    return rank == 0 && all[1] ? 1 : 0;
}
