/* Tests memory from MPI_Alloc_mem. Blocks of all lengths do not overlap and keep their contents. Windows cover blocks, parts of blocks and
 * blocks allocated after the first window. Many accesses with one flush use this memory and memory from malloc. Messages, contiguous and
 * with gaps, are sent from and received into it. Freed memory can be allocated again. */
#include "check.h"

static int rank, size;

enum { kBlocks = 60 };

static size_t length_of(int i) {
    return i % 3 == 0 ? (size_t)i * 7 + 1 : i % 3 == 1 ? (size_t)i * 4099 : (size_t)1 << (i % 22);
}

static void blocks(void) {
    unsigned char* block[kBlocks] = {0};
    for (int round = 0; round < 3; ++round) {
        for (int i = round; i < kBlocks; i += round + 1) {
            if (block[i]) OK(MPI_Free_mem(block[i]));
            OK(MPI_Alloc_mem((MPI_Aint)length_of(i), MPI_INFO_NULL, &block[i]));
            CHECK((uintptr_t)block[i] % 64 == 0, "block %d is at %p", i, (void*)block[i]);
            memset(block[i], i + rank, length_of(i));
        }
        for (int i = 0; i < kBlocks; ++i) {
            for (size_t j = 0; block[i] && j < length_of(i); ++j)
                CHECK(block[i][j] == (unsigned char)(i + rank), "byte %zu of block %d", j, i);
        }
    }
    for (int i = 0; i < kBlocks; ++i) OK(MPI_Free_mem(block[i]));
    OK(MPI_Free_mem(NULL));
    MPI_Info info;
    void* aligned;
    OK(MPI_Info_create(&info));
    OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", "65536"));
    OK(MPI_Alloc_mem(10, info, &aligned));
    CHECK((uintptr_t)aligned % 65536 == 0, "the memory is at %p", aligned);
    OK(MPI_Free_mem(aligned));
    for (int i = on_one_host() ? 0 : 4; i < 6; ++i) {
        // Without alloc_shared_noncontig only rank 0's part of a shared window is aligned.
        char wanted[16];
        MPI_Win win;
        snprintf(wanted, sizeof wanted, "%ld", i % 2 ? 1L << 23 : 1L << 18);
        OK(MPI_Info_set(info, "mpi_minimum_memory_alignment", wanted));
        OK(MPI_Info_set(info, "alloc_shared_noncontig", i / 2 == 1 ? "true" : "false"));
        if (i / 2 == 2)
            OK(MPI_Win_allocate(100, 1, info, MPI_COMM_WORLD, &aligned, &win));
        else
            OK(MPI_Win_allocate_shared(100, 1, info, MPI_COMM_WORLD, &aligned, &win));
        if (i / 2 != 0 || rank == 0)
            CHECK((uintptr_t)aligned % strtoul(wanted, NULL, 10) == 0, "alignment %s: the memory is at %p", wanted, aligned);
        const char own = (char)(rank + 1), *next = aligned;
        memset(aligned, own, 100);
        OK(MPI_Win_fence(0, win));
        char read = 0;
        OK(MPI_Get(&read, 1, MPI_CHAR, (rank + 1) % size, 99, 1, MPI_CHAR, win));
        OK(MPI_Win_fence(0, win));
        EXPECT_INT(read, (rank + 1) % size + 1);
        EXPECT_INT(next[99], own);
        OK(MPI_Win_free(&win));
    }
    OK(MPI_Info_free(&info));
}

/* Each rank puts a number into every rank's window, gets one from its right neighbor, and accumulates counters in all. The window excludes
 * the block's first `skip` numbers. */
static void window(long* memory, int skip, long numbers) {
    const int right = (rank + 1) % size;
    long ones[3] = {1, 1, 1}, read = 0;
    MPI_Win win;
    for (long i = 0; i < skip + numbers; ++i) memory[i] = -1;
    OK(MPI_Win_create(memory + skip, (MPI_Aint)(numbers * (long)sizeof(long)), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD,
                      &win));
    const long own = 100 + rank;
    for (int to = 0; to < size; ++to) {
        OK(MPI_Win_lock(MPI_LOCK_SHARED, to, 0, win));
        OK(MPI_Put(&own, 1, MPI_LONG, to, rank, 1, MPI_LONG, win));
        OK(MPI_Win_unlock(to, win));
    }
    OK(MPI_Win_fence(0, win));
    for (int from = 0; from < size; ++from) EXPECT_INT(memory[skip + from], 100 + from);
    for (int before = 0; before < skip; ++before) EXPECT_INT(memory[before], -1);
    OK(MPI_Get(&read, 1, MPI_LONG, right, right, 1, MPI_LONG, win));
    for (int to = 0; to < size; ++to)
        for (int i = 0; i < 20; ++i) {
            OK(MPI_Accumulate(ones, 1, MPI_LONG, to, size, 1, MPI_LONG, MPI_SUM, win));
            OK(MPI_Accumulate(ones, 3, MPI_LONG, to, size, 3, MPI_LONG, MPI_SUM, win));
        }
    OK(MPI_Win_fence(0, win));
    EXPECT_INT(read, 100 + right);
    EXPECT_INT(memory[skip + size], -1 + 40 * size);
    EXPECT_INT(memory[skip + size + 2], -1 + 20 * size);
    /* An access beyond the window's end fails. A rank's window is at most one number longer than its left neighbor's. */
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    int class;
    OK(MPI_Error_class(MPI_Put(&own, 1, MPI_LONG, right, numbers + 1, 1, MPI_LONG, win), &class));
    EXPECT_INT(class, MPI_ERR_RMA_RANGE);
    OK(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    OK(MPI_Win_free(&win));
}

static void windows(void) {
    long *first, *second;
    const long numbers = size + 3, many = 100000 + rank;
    OK(MPI_Alloc_mem((MPI_Aint)((numbers + 5) * (long)sizeof(long)), MPI_INFO_NULL, &first));
    window(first, 0, numbers);
    window(first, 5, numbers);
    OK(MPI_Alloc_mem((MPI_Aint)(many * (long)sizeof(long)), MPI_INFO_NULL, &second));
    window(second, 777, many - 777);
    OK(MPI_Free_mem(first));
    OK(MPI_Free_mem(second));
}

/* Puts and gets many blocks of many lengths with one flush, which must complete all of them. */
static void rows(unsigned char* memory) {
    enum { kRows = 300, kApart = 6000 };
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    unsigned char* out = malloc((size_t)kRows * kApart);
    unsigned char* in = calloc(kRows, kApart);
    MPI_Win win;
    memset(memory, 0, (size_t)kRows * kApart);
    OK(MPI_Win_create(memory, (MPI_Aint)kRows * kApart, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    OK(MPI_Win_lock_all(0, win));
    for (int i = 0; i < kRows; ++i) {
        const int bytes = i % 7 == 3 ? 5000 + i : i % 50 + 1;
        memset(out + i * kApart, i + rank, (size_t)bytes);
        OK(MPI_Put(out + i * kApart, bytes, MPI_BYTE, right, (MPI_Aint)i * kApart, bytes, MPI_BYTE, win));
        if (i % 100 != 99) continue;
        OK(MPI_Win_flush(right, win));
        for (int j = i - 99; j <= i; ++j)
            OK(MPI_Get(in + j * kApart, kApart, MPI_BYTE, right, (MPI_Aint)j * kApart, kApart, MPI_BYTE, win));
        for (int j = i - 99; j <= i; ++j)
            OK(MPI_Get(in + j * kApart, j % 60 + 1, MPI_BYTE, right, (MPI_Aint)j * kApart, j % 60 + 1, MPI_BYTE, win));
    }
    OK(MPI_Win_unlock_all(win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < kRows; ++i)
        for (int j = 0; j < kApart; ++j) {
            const int there = j < (i % 7 == 3 ? 5000 + i : i % 50 + 1);
            EXPECT_INT(in[i * kApart + j], there ? (unsigned char)(i + rank) : 0);
            EXPECT_INT(memory[i * kApart + j], there ? (unsigned char)(i + left) : 0);
        }
    OK(MPI_Win_free(&win));
    free(out);
    free(in);
}

static void rows_of_both_kinds(void) {
    unsigned char *exchanged, *plain = malloc(300 * 6000);
    OK(MPI_Alloc_mem(300 * 6000, MPI_INFO_NULL, &exchanged));
    rows(exchanged);
    rows(plain);
    OK(MPI_Free_mem(exchanged));
    free(plain);
}

static int value(int from, size_t i, int round) { return (int)(i * 2654435761u >> 3) + from * 31 + round; }

/* Passes messages around a ring. With `gaps`, the receive type takes only the first of each pair of ints. */
static void ring(int* out, int* in, size_t ints, int gaps, int round) {
    const int right = (rank + 1) % size, left = (rank + size - 1) % size, step = gaps ? 2 : 1;
    MPI_Datatype type;
    OK(MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)(step * (int)sizeof(int)), &type));
    OK(MPI_Type_commit(&type));
    for (size_t i = 0; i < ints; ++i) out[i] = value(rank, i, round);
    for (size_t i = 0; i < ints * (size_t)step; ++i) in[i] = -1;
    OK(MPI_Sendrecv(out, (int)ints, MPI_INT, right, round, in, (int)ints, type, left, round, MPI_COMM_WORLD,
                    MPI_STATUS_IGNORE));
    for (size_t i = 0; i < ints * (size_t)step; ++i) {
        const int wanted = i % (size_t)step ? -1 : value(left, i / (size_t)step, round);
        CHECK(in[i] == wanted, "int %zu of %zu is %d, wanted %d", i, ints, in[i], wanted);
    }
    OK(MPI_Type_free(&type));
}

static void messages(void) {
    static const size_t kInts[] = {1, 1000, 5000, 30000, 200000, 2000000};
    const size_t most = kInts[5];
    int *out, *in, *plain = malloc(2 * most * sizeof(int));
    OK(MPI_Alloc_mem((MPI_Aint)(most * sizeof(int)), MPI_INFO_NULL, &out));
    OK(MPI_Alloc_mem((MPI_Aint)(2 * most * sizeof(int)), MPI_INFO_NULL, &in));
    for (int round = 0; round < 6; ++round)
        for (int gaps = 0; gaps < 2; ++gaps) {
            ring(out, in, kInts[round], gaps, round);
            ring(out, plain, kInts[round], gaps, round);
            ring(plain, in, kInts[round], gaps, round);
        }
    OK(MPI_Free_mem(out));
    OK(MPI_Free_mem(in));
    free(plain);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    blocks();
    windows();
    rows_of_both_kinds();
    messages();
    windows();
    OK(MPI_Finalize());
    return 0;
}
