// Tests the symmetric heap: equal offsets on all PEs, reuse of gaps, aligned, cleared, extended and shrunk memory, and exhaustion. A random
// sequence is compared with a model of the heap's contents.
#include "check.h"

static int me, n;

static void expect_same_offset(const char* memory, const char* base) {
    long* offset = shmem_malloc(2 * sizeof *offset);
    offset[0] = memory - base;
    shmem_barrier_all();
    EXPECT_INT(shmem_long_g(offset, 0), offset[0]);
    shmem_barrier_all();
    shmem_free(offset);
}

static void test_kinds(void) {
    char* base = shmem_malloc(1);
    CHECK(shmem_malloc(0) == NULL, "memory of no bytes");
    unsigned char* cleared = shmem_calloc(1000, 3);
    for (int i = 0; i < 3000; i++) EXPECT_INT(cleared[i], 0);
    memset(cleared, 255, 3000);
    shmem_free(cleared);
    cleared = shmem_calloc(3, 1000);
    for (int i = 0; i < 3000; i++) EXPECT_INT(cleared[i], 0);
    CHECK(shmem_calloc(SIZE_MAX / 2, 3) == NULL, "more bytes than there can be");
    const size_t highest = getenv("SHMEM_SYMMETRIC_SIZE") ? 1 << 19 : 1 << 30;
    for (size_t alignment = 8; alignment <= highest; alignment *= 2) {
        char* aligned = shmem_align(alignment, 100);
        CHECK(aligned != NULL, "no memory at a multiple of %zu", alignment);
        EXPECT_INT((uintptr_t)aligned % alignment, 0);
        expect_same_offset(aligned, base);
        shmem_free(aligned);
    }
    CHECK(shmem_align(0, 100) == NULL && shmem_align(48, 100) == NULL, "an alignment that is not a power of two");
    char* hinted = shmem_malloc_with_hints(500, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    CHECK(hinted != NULL, "no memory with hints");
    shmem_free(hinted);
    shmem_free(NULL);
    shmem_free(cleared);
    shmem_free(base);
}

static void test_reallocation(void) {
    int* memory = shmem_realloc(NULL, 100 * sizeof(int));
    for (int i = 0; i < 100; i++) memory[i] = me * 1000 + i;
    memory = shmem_realloc(memory, 100000 * sizeof(int));  // the block grows in place
    char* behind = shmem_malloc(10);
    int* moved = shmem_realloc(memory, 200000 * sizeof(int));
    CHECK(moved != memory, "the block grew in place although another block follows it");
    for (int i = 0; i < 100; i++) EXPECT_INT(moved[i], me * 1000 + i);
    moved = shmem_realloc(moved, 50 * sizeof(int));
    for (int i = 0; i < 50; i++) EXPECT_INT(shmem_int_g(&moved[i], (me + 1) % n), (me + 1) % n * 1000 + i);
    shmem_barrier_all();
    CHECK(shmem_realloc(moved, 0) == NULL, "memory of no bytes");
    shmem_free(behind);
}

static void test_random(void) {
    enum { MOST = 40 };
    struct {
        unsigned char* memory;
        size_t bytes;
        unsigned char byte;
    } held[MOST] = {{0}};
    uint64_t state = 42;  // random state, equal on all PEs
    for (int step = 0; step < 400; step++) {
        const int i = (int)(next_random(&state) % MOST);
        const size_t bytes = 1 + next_random(&state) % (step % 10 == 0 ? 300000 : 3000);
        if (held[i].memory) {
            for (size_t k = 0; k < held[i].bytes; k += 1 + k / 16)
                EXPECT_INT(held[i].memory[k], (unsigned char)(held[i].byte + me));
            if (next_random(&state) % 2) {
                shmem_free(held[i].memory);
                held[i].memory = NULL;
                continue;
            }
            held[i].memory = shmem_realloc(held[i].memory, bytes);
        } else {
            held[i].memory = shmem_malloc(bytes);
        }
        CHECK(held[i].memory != NULL, "no memory at step %d", step);
        held[i].bytes = bytes;
        held[i].byte = (unsigned char)step;
        memset(held[i].memory, step + me, bytes);
        // The next PE's block has the same address as this PE's.
        const int next = (me + 1) % n;
        shmem_barrier_all();
        EXPECT_INT(shmem_uchar_g(&held[i].memory[bytes - 1], next), (unsigned char)(step + next));
        shmem_barrier_all();
    }
    for (int i = 0; i < MOST; i++) shmem_free(held[i].memory);
}

static void test_end(void) {
    const char* limit = getenv("SHMEM_SYMMETRIC_SIZE");
    CHECK(shmem_malloc((size_t)1 << 50) == NULL, "more than there can be");
    if (!limit) return;
    void* all[100];
    int count = 0;
    while (count < 100 && (all[count] = shmem_malloc(100000))) count++;
    EXPECT_INT(count, 10);  // exactly 10 blocks fit in the heap of 1 MB
    while (count > 0) shmem_free(all[--count]);
    CHECK((all[0] = shmem_malloc(1000000)) != NULL, "the heap does not have all its memory again");
    shmem_free(all[0]);
}

static void test_old_names(void) {
    char* a = shmalloc(10);
    char* b = shmemalign(256, 10);
    EXPECT_INT((uintptr_t)b % 256, 0);
    a = shrealloc(a, 1000);
    CHECK(a && b, "no memory");
    shfree(a);
    shfree(b);
}

int main(void) {
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    test_kinds();
    if (!getenv("SHMEM_SYMMETRIC_SIZE")) {
        test_reallocation();
        test_random();
    }
    test_end();
    test_old_names();
    shmem_finalize();
    return 0;
}
