// One rank lacks descriptors to create its part of a window or to map another rank's part. Then no rank gets a window, all return an error,
// and none hangs. The test allows one descriptor more in each round, until all ranks get a window.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"

enum { kMost = 256 };

static int rank, size;
static int taken[kMost], many;

static void take_all_descriptors(void) {
    int one;
    while (many < kMost && (one = open("/dev/null", O_RDONLY)) >= 0) taken[many++] = one;
}

static void give_back_descriptors(int count) {
    while (many > 0 && count-- > 0) close(taken[--many]);
}

static int make(int flavor, MPI_Win* win) {
    static long memory[8];
    void* base;
    if (flavor == MPI_WIN_FLAVOR_CREATE) return MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, win);
    if (flavor == MPI_WIN_FLAVOR_ALLOCATE) return MPI_Win_allocate(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win);
    if (flavor == MPI_WIN_FLAVOR_SHARED) return MPI_Win_allocate_shared(64, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &base, win);
    return MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, win);
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    const struct rlimit few = {kMost, kMost};
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0, "the limit on descriptors can't be lowered");
    OK(MPI_Barrier(MPI_COMM_WORLD));
    const int flavors[] = {MPI_WIN_FLAVOR_SHARED, MPI_WIN_FLAVOR_ALLOCATE, MPI_WIN_FLAVOR_CREATE, MPI_WIN_FLAVOR_DYNAMIC};
#ifdef __SANITIZE_ADDRESS__
    // UBSan checks through a pipe whether it may read an object's type: it needs descriptors for each type that it sees for the first time.
    for (size_t i = 0; i < sizeof flavors / sizeof flavors[0]; i++) {
        MPI_Win seen;
        OK(make(flavors[i], &seen));
        OK(MPI_Win_fence(0, seen));
        OK(MPI_Win_free(&seen));
    }
#endif
    for (int failing = size - 1; failing >= 0; failing--) {
        for (int free_descriptors = 0; free_descriptors < 3; free_descriptors++) {
            for (size_t i = 0; i < sizeof flavors / sizeof flavors[0]; i++) {
                MPI_Win win = MPI_WIN_NULL;
                if (rank == failing) take_all_descriptors(), give_back_descriptors(free_descriptors);
                const int class = class_of(make(flavors[i], &win));
                int first = class;
                OK(MPI_Bcast(&first, 1, MPI_INT, 0, MPI_COMM_WORLD));
                CHECK(class == first, "flavor %d, rank %d with %d descriptors: error class %d, rank 0 has %d", flavors[i],
                      failing, free_descriptors, class, first);
                CHECK((class == MPI_SUCCESS) == (win != MPI_WIN_NULL), "error class %d", class);
                if (class == MPI_SUCCESS) OK(MPI_Win_fence(0, win));
                if (class == MPI_SUCCESS) OK(MPI_Win_free(&win));
                if (rank == failing) give_back_descriptors(many);
            }
        }
    }
    OK(MPI_Finalize());
    return 0;
}
