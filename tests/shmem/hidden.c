// Address space that is only reserved for growth of the symmetric heap must not be readable, nor be part of a core dump, in this PE and its
// neighbors. Memory that the heap grows into must be accessible to neighbors that have mapped the heap before and to those that map it
// later.
#include "../mpi/mapped.h"
#include "check.h"

static void check_mappings(int pes, long had, const char* when) {
    const struct mapped found = look_at_mappings();
    CHECK(found.readable <= (34 + had) * pes + 64, "%s %ld MB of shared memory can be read", when, found.readable);
    CHECK(found.dumped <= had + 64, "%s %ld MB of shared memory would be dumped", when, found.dumped);
}

int main(void) {
    enum { kSmall = 100, kLong = 20 << 20 };
    shmem_init();
    const int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes, before = (me + pes - 1) % pes;
    check_mappings(pes, 0, "at first");
    char* small = shmem_malloc(kSmall);
    shmem_char_p(small, (char)me, next);
    shmem_barrier_all();
    EXPECT_INT(*small, before);
    check_mappings(pes, 2, "after the first access");
    char* large = shmem_malloc(kLong);
    shmem_char_p(large + kLong - 1, (char)(me + 1), next);
    shmem_char_p(large + kLong - 2, (char)(me + 2), before);
    shmem_barrier_all();
    EXPECT_INT(large[kLong - 1], before + 1);
    EXPECT_INT(large[kLong - 2], next + 2);
    check_mappings(pes, 24, "after the heap has grown");
    shmem_free(large);
    shmem_free(small);
    shmem_finalize();
    return 0;
}
