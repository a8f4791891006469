// A rank dies in every state of an active-target epoch (fence, post, start), and the job continues (--enable-recovery). Processes that wait
// for it get MPIX_ERR_PROC_FAILED, and the window still works among the others.
#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

enum { kBeforePost, kPosted, kStarted, kInFence, kWithAccesses, kAllPosted, kAllStarted, kStates };

static MPI_Win win;
static int rank, size, doomed, *memory;
static MPI_Group all, others, group_of_doomed, group_of_0;

static void die_in(int state) {
    const int one = 1;
    if (state == kPosted) OK(MPI_Win_post(others, 0, win));
    if (state == kStarted) OK(MPI_Win_start(group_of_0, 0, win));
    if (state == kInFence || state == kWithAccesses) {
        OK(MPI_Win_fence(0, win));
        // If this rank left its fence first and died, the others' fences could fail: wait until all have left theirs.
        for (int i = 0; i < size - 1; ++i) OK(MPI_Recv(NULL, 0, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    if (state == kStarted || state == kWithAccesses) OK(MPI_Put(&one, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
    // Other ranks that wait for this one are waiting already, or will be soon.
    raise(SIGKILL);
}

/// Epochs with a rank that dies: as a target that never posts, as a target that has posted, or as an origin that has not completed.
static void groups(int state) {
    if (state == kStarted && rank == 0) {
        OK(MPI_Win_post(group_of_doomed, 0, win));
        EXPECT_INT(class_of(MPI_Win_wait(win)), MPIX_ERR_PROC_FAILED);
    }
    if (state == kStarted) return;
    const int one = 1;
    const int code = MPI_Win_start(group_of_doomed, 0, win);
    if (state == kBeforePost) EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
    const int put = MPI_Put(&one, 1, MPI_INT, doomed, rank, 1, MPI_INT, win);
    CHECK(put == MPI_SUCCESS || class_of(put) == MPIX_ERR_PROC_FAILED, "MPI_Put to a dead rank gave class %d", class_of(put));
    const int end = MPI_Win_complete(win);
    // If the target has posted, it may have died before or after the epoch's end.
    CHECK(end == MPI_SUCCESS || class_of(end) == MPIX_ERR_PROC_FAILED, "MPI_Win_complete gave class %d", class_of(end));
}

/// All wait for all, so only the death ends their calls. Messages of that epoch may still arrive, so the window has no other epochs of groups.
static void everybody(int state) {
    if (state == kAllPosted) {
        OK(MPI_Win_post(all, 0, win));
        EXPECT_INT(class_of(MPI_Win_wait(win)), MPIX_ERR_PROC_FAILED);
    } else {
        EXPECT_INT(class_of(MPI_Win_start(all, 0, win)), MPIX_ERR_PROC_FAILED);
        EXPECT_INT(class_of(MPI_Win_complete(win)), MPIX_ERR_PROC_FAILED);
    }
}

static void fences(int state) {
    OK(MPI_Win_fence(0, win));
    OK(MPI_Send(NULL, 0, MPI_INT, doomed, 0, MPI_COMM_WORLD));
    const int value = rank;
    if (state == kWithAccesses) OK(MPI_Put(&value, 1, MPI_INT, 0, 2 + rank, 1, MPI_INT, win));
    EXPECT_INT(class_of(MPI_Win_fence(0, win)), MPIX_ERR_PROC_FAILED);
    EXPECT_INT(class_of(MPI_Win_fence(MPI_MODE_NOSUCCEED, win)), MPIX_ERR_PROC_FAILED);
}

/// The surviving ranks run an epoch of each kind without the dead member.
static void among_the_living(void) {
    MPI_Group mates;
    int dead[1] = {doomed}, sum = 0;
    OK(MPI_Group_excl(all, 1, dead, &mates));
    *memory = 0;
    OK(MPI_Win_post(mates, 0, win));
    OK(MPI_Win_start(mates, 0, win));
    const int value = rank + 1;
    for (int to = 0; to < size - 1; ++to) OK(MPI_Accumulate(&value, 1, MPI_INT, to, 0, 1, MPI_INT, MPI_SUM, win));
    OK(MPI_Win_complete(win));
    OK(MPI_Win_wait(win));
    EXPECT_INT(*memory, (size - 1) * size / 2);
    OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win));
    OK(MPI_Get(&sum, 1, MPI_INT, 0, 0, 1, MPI_INT, win));
    OK(MPI_Win_unlock(0, win));
    EXPECT_INT(sum, (size - 1) * size / 2);
    OK(MPI_Group_free(&mates));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int state = argc > 1 ? atoi(argv[1]) : kBeforePost;
    doomed = size - 1;
    OK(MPI_Win_allocate((size + 2) * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    int first[1] = {0}, dead[1] = {doomed};
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    OK(MPI_Group_excl(all, 1, dead, &others));
    OK(MPI_Group_incl(all, 1, dead, &group_of_doomed));
    OK(MPI_Group_incl(all, 1, first, &group_of_0));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (rank == doomed) die_in(state);
    if (state == kInFence || state == kWithAccesses)
        fences(state);
    else if (state == kAllPosted || state == kAllStarted)
        everybody(state);
    else
        groups(state);
    if (state < kAllPosted) among_the_living();
    EXPECT_INT(class_of(MPI_Win_free(&win)), MPIX_ERR_PROC_FAILED);
    if (rank == 0) printf("the window went on without rank %d\n", doomed);
    MPI_Group* groups[] = {&all, &others, &group_of_doomed, &group_of_0};
    for (int i = 0; i < 4; ++i) OK(MPI_Group_free(groups[i]));
    OK(MPI_Finalize());
    return 0;
}
