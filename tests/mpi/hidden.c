// Address space that is only reserved must not be visible. Memory that was not allocated, this process's or a neighbor's, cannot be read,
// is not part of a core dump, and is not populated by mlockall.
#include <sys/mman.h>

#include "check.h"
#include "mapped.h"

// A job segment has 32 MB per rank.
static void check_mappings(int size, const char* when) {
    const struct mapped found = look_at_mappings();
    CHECK(found.readable <= 34 * size + 64, "%s %ld MB of shared memory can be read", when, found.readable);
    CHECK(found.dumped <= 48, "%s %ld MB of shared memory would be dumped", when, found.dumped);
}

int main(int argc, char** argv) {
    enum { kBytes = 1000, kLong = 20 << 20 };
    int rank, size;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    char *memory, *large;
    OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory));
    check_mappings(size, "after MPI_Alloc_mem");

    MPI_Win window;
    const int next = (rank + 1) % size;
    char word = (char)(rank + 1), found = 0;
    memset(memory, 0, kBytes);
    OK(MPI_Win_create(memory, kBytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Put(&word, 1, MPI_CHAR, next, kBytes - 1, 1, MPI_CHAR, window));
    OK(MPI_Win_fence(0, window));
    EXPECT_INT(memory[kBytes - 1], (rank + size - 1) % size + 1);
    check_mappings(size, "with a neighbour's memory");
    OK(MPI_Win_free(&window));

    // Memory beyond the part that the neighbors have mapped so far must become accessible to them too.
    OK(MPI_Alloc_mem(kLong, MPI_INFO_NULL, &large));
    large[kLong - 1] = word;
    OK(MPI_Win_create(large, kLong, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window));
    OK(MPI_Win_fence(0, window));
    OK(MPI_Get(&found, 1, MPI_CHAR, next, kLong - 1, 1, MPI_CHAR, window));
    OK(MPI_Win_fence(0, window));
    EXPECT_INT(found, next + 1);
    check_mappings(size, "with more memory");
    OK(MPI_Win_free(&window));
    OK(MPI_Free_mem(large));
    OK(MPI_Free_mem(memory));
    OK(MPI_Barrier(MPI_COMM_WORLD));

    // If the limits allow mlockall: it must not populate memory that was not allocated before.
    if (size == 1 && mlockall(MCL_CURRENT | MCL_FUTURE) == 0) {
        OK(MPI_Alloc_mem(kBytes, MPI_INFO_NULL, &memory));
        const struct mapped locked = look_at_mappings();
        CHECK(locked.resident <= 128, "mlockall populates %ld MB of shared memory", locked.resident);
        OK(MPI_Free_mem(memory));
        munlockall();
    }
    OK(MPI_Finalize());
    return 0;
}
