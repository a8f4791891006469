// One rank dies at a random moment while it uses windows, and the job continues (--enable-recovery). "locks": locks of all kinds are
// requested, held and released, and accesses are in flight. "births": windows are created, used and freed. The others get no error other
// than from this death, two ranks never hold one exclusive lock, and none hangs. Usage: window_kills locks|births SEED
#include <mpi-ext.h>
#include <unistd.h>

#include "death.h"

enum { kMostRanks = 16, kBulk = 1 << 13 };

/// The contents of a rank's window. Each counter has an array with one entry per rank that is changed together with it.
struct Counters {
    long under_lock, under_lock_of[kMostRanks];  ///< changed by get and put under an exclusive lock
    long atomic, atomic_of[kMostRanks];          ///< changed by accumulates under any lock
    long bulk[kMostRanks][kBulk / kMostRanks];   ///< written by long puts, a separate part per rank
};

static int rank, size, doomed;
static uint64_t state;
static struct Counters* memory;
static MPI_Win win;
static long under_lock_done[kMostRanks], atomic_done[kMostRanks];
static long long sum_of_failures;

static MPI_Aint at(const void* field) { return (const char*)field - (const char*)memory; }

/// Lets all ranks begin together, and the doomed one die within at most `most_us` microseconds. It begins to die when all have left the
/// barrier, which would fail on a rank that is still in it.
static void begin_with_death_within(int most_us) {
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (is_doomed_and_all_are_ready(MPI_COMM_WORLD, &doomed, 1)) die_within(&state, most_us);
}

/// Returns whether a call succeeded. It may fail only because of the dead rank.
static int went_well(int code, const char* what, int target) {
    if (code == MPI_SUCCESS) return 1;
    ++sum_of_failures;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(code, text, &length);
    CHECK(class_of(code) == MPIX_ERR_PROC_FAILED, "%s: %s", what, text);
    CHECK(target == doomed || target < 0, "%s of rank %d, which is alive: %s", what, target, text);
    return 0;
}
#define WENT_WELL(call, target) went_well(call, #call, target)

static void add_under_lock(int target) {
    long* const mine = &memory->under_lock_of[rank];
    if (!WENT_WELL(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win), target)) return;
    long all = 0, own = 0;
    int fine = WENT_WELL(MPI_Get(&all, 1, MPI_LONG, target, at(&memory->under_lock), 1, MPI_LONG, win), target) &&
               WENT_WELL(MPI_Get(&own, 1, MPI_LONG, target, at(mine), 1, MPI_LONG, win), target) &&
               WENT_WELL(MPI_Win_flush(target, win), target);
    ++all, ++own;
    fine = fine && WENT_WELL(MPI_Put(&all, 1, MPI_LONG, target, at(&memory->under_lock), 1, MPI_LONG, win), target) &&
           WENT_WELL(MPI_Put(&own, 1, MPI_LONG, target, at(mine), 1, MPI_LONG, win), target);
    if (WENT_WELL(MPI_Win_unlock(target, win), target) && fine) ++under_lock_done[target];
}

static int add_atomically(int target) {
    static const long one = 1;
    static long before;  // static, because the fetch writes to it until the unlock; never read
    return WENT_WELL(MPI_Fetch_and_op(&one, &before, MPI_LONG, target, at(&memory->atomic), MPI_SUM, win), target) &&
           WENT_WELL(MPI_Accumulate(&one, 1, MPI_LONG, target, at(&memory->atomic_of[rank]), 1, MPI_LONG, MPI_SUM, win),
                     target);
}

static void add_in_shared_lock(int target) {
    static long bulk[kBulk / kMostRanks];
    if (!WENT_WELL(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win), target)) return;
    for (int i = 0; i < kBulk / kMostRanks; ++i) bulk[i] = rank;
    int fine = add_atomically(target);
    fine = fine && WENT_WELL(MPI_Put(bulk, kBulk / kMostRanks, MPI_LONG, target, at(memory->bulk[rank]), kBulk / kMostRanks,
                                     MPI_LONG, win),
                             target);
    if (WENT_WELL(MPI_Win_unlock(target, win), target) && fine) ++atomic_done[target];
}

static void add_in_lock_all(void) {
    int fine[kMostRanks];
    if (!WENT_WELL(MPI_Win_lock_all(0, win), -1)) return;
    for (int target = 0; target < size; ++target)
        fine[target] = add_atomically(target) && WENT_WELL(MPI_Win_flush(target, win), target);
    WENT_WELL(MPI_Win_unlock_all(win), -1);
    for (int target = 0; target < size; ++target) atomic_done[target] += fine[target];
}

static int doomed_lives(void) {
    MPI_Group failed;
    int count;
    OK(MPIX_Comm_get_failed(MPI_COMM_WORLD, &failed));
    OK(MPI_Group_size(failed, &count));
    OK(MPI_Group_free(&failed));
    return count == 0;
}

/// Works until the time is over and the doomed rank has died, which may have begun late.
static void work_until(double deadline) {
    while (MPI_Wtime() < deadline || doomed_lives()) {
        const uint64_t drawn = next_random(&state);
        const int target = (int)(drawn / 8 % (uint64_t)size);
        if (drawn % 8 == 7)
            add_in_lock_all();
        else if (drawn % 8 > 4)
            add_in_shared_lock(target);
        else
            add_under_lock(target);
    }
}

/// A barrier of the surviving ranks by messages, because a collective with a dead member would not complete.
static void everyone_has_stopped(void) {
    const int root = doomed == 0;
    char byte = 0;
    for (int other = 0; other < size; ++other) {
        if (other == root || other == doomed) continue;
        if (rank == root) OK(MPI_Recv(&byte, 1, MPI_CHAR, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (rank != root) OK(MPI_Send(&byte, 1, MPI_CHAR, root, 1, MPI_COMM_WORLD));
    for (int other = 0; other < size; ++other) {
        if (other == root || other == doomed) continue;
        if (rank == root) OK(MPI_Send(&byte, 1, MPI_CHAR, other, 2, MPI_COMM_WORLD));
    }
    if (rank != root) OK(MPI_Recv(&byte, 1, MPI_CHAR, root, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/// The dead rank may have made only a part of its last change; all others have completed theirs.
static void check_sums(const char* what, long all, const long* each) {
    for (int other = 0; other < size; ++other) all -= each[other];
    CHECK(all >= -1 && all <= 1, "%s is %ld off", what, all);
}

static void check_memory(void) {
    check_sums("the sum under exclusive locks", memory->under_lock, memory->under_lock_of);
    check_sums("the sum of updates", memory->atomic, memory->atomic_of);
}

static void check_own_in(int target) {
    static struct Counters seen;
    OK(MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win));
    OK(MPI_Get(&seen, sizeof seen, MPI_BYTE, target, 0, sizeof seen, MPI_BYTE, win));
    OK(MPI_Win_unlock(target, win));
    EXPECT_INT(seen.under_lock_of[rank], under_lock_done[target]);
    EXPECT_INT(seen.atomic_of[rank], atomic_done[target]);
    for (int i = 0; atomic_done[target] && i < kBulk / kMostRanks; ++i)
        CHECK(seen.bulk[rank][i] == rank || !seen.bulk[rank][i], "long put: %ld", seen.bulk[rank][i]);
}

static void locks(void) {
    OK(MPI_Win_allocate(sizeof *memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    memset(memory, 0, sizeof *memory);
    begin_with_death_within(200000);
    work_until(MPI_Wtime() + 0.4);
    everyone_has_stopped();
    check_memory();
    for (int target = 0; target < size; ++target)
        if (target != doomed) check_own_in(target);
    everyone_has_stopped();
    WENT_WELL(MPI_Win_free(&win), -1);
}

/// Creates, uses and frees one window. Returns false if a process has died.
static int live(int round) {
    static long buffer;  // static, because another rank may still put into it when the death has ended this rank's part
    long* own = &buffer;
    buffer = rank;
    const int right = (rank + 1) % size, left = (rank + size - 1) % size, made = round % 2;
    if (!WENT_WELL(made ? MPI_Win_create(own, sizeof *own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win)
                        : MPI_Win_allocate(sizeof *own, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win),
                   -1))
        return 0;
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    const long value = rank + 100;
    int fine = WENT_WELL(MPI_Win_fence(0, win), -1);
    fine = fine && WENT_WELL(MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, win), -1);
    fine = fine && WENT_WELL(MPI_Win_fence(MPI_MODE_NOSUCCEED, win), -1);
    if (fine) EXPECT_INT(*own, left + 100);
    return WENT_WELL(MPI_Win_free(&win), -1) && fine;
}

static void births(void) {
    int rounds = 0;
    begin_with_death_within(50000);
    while (live(rounds)) ++rounds;
    CHECK(sum_of_failures > 0, "no call has failed");
    everyone_has_stopped();
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(argc == 3 && size > 2 && size <= kMostRanks, "usage: mpiexec --enable-recovery -n N window_kills locks|births SEED");
    test_seed = strtoull(argv[2], NULL, 10);
    state = test_seed;
    doomed = (int)(next_random(&state) % (uint64_t)size);
    state += (uint64_t)rank << 32;
    if (strcmp(argv[1], "locks") == 0)
        locks();
    else
        births();
    if (rank == (doomed == 0)) printf("all went on without rank %d\n", doomed);
    OK(MPI_Finalize());
    return 0;
}
