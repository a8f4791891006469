// A rank dies while the others use a window (--enable-recovery). Rank 1 waits for the dead one, gives up and revokes the window, while the
// others wait for rank 1. All of them free the window without the dead rank. The state says what the dead rank held or did.
#include <mpi-ext.h>
#include <signal.h>

#include "check.h"

enum { kIdle, kHoldsLock, kHoldsLocks, kPosted, kLater, kStates };

static MPI_Win win;
static int rank, size, doomed, *memory;

static MPI_Group group_of(MPI_Group all, int member) {
    MPI_Group made;
    OK(MPI_Group_incl(all, 1, &member, &made));
    return made;
}

static void die_in(int state, MPI_Group group_of_1) {
    if (state == kHoldsLock) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win));
    if (state == kHoldsLocks) OK(MPI_Win_lock_all(0, win));
    if (state == kPosted) OK(MPI_Win_post(group_of_1, 0, win));
    OK(MPI_Barrier(MPI_COMM_WORLD));
    if (state == kLater) OK(MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    raise(SIGKILL);
}

/// Rank 1 learns of the death by a call that fails.
static void find_death(int state, MPI_Group group_of_doomed) {
    if (state == kLater) OK(MPI_Send(NULL, 0, MPI_BYTE, doomed, 3, MPI_COMM_WORLD));
    // The dead rank posts in one state, but never again.
    int code = MPI_SUCCESS;
    while (code == MPI_SUCCESS) {
        code = MPI_Win_start(group_of_doomed, 0, win);
        const int end = MPI_Win_complete(win);
        if (code == MPI_SUCCESS) code = end;
    }
    EXPECT_INT(class_of(code), MPIX_ERR_PROC_FAILED);
}

/// The others wait for rank 1, which lives but has given up: without the revocation these calls would never end.
static int wait_for_rank_1(MPI_Group group_of_1) {
    if (rank % 2 == 0) return MPI_Win_start(group_of_1, 0, win);
    const int code = MPI_Win_post(group_of_1, 0, win);
    return code ? code : MPI_Win_wait(win);
}

static void expect_failed(MPI_Group all) {
    MPI_Group failed;
    int count = 0, who = 0, place = -1;
    for (;;) {  // this rank may learn of the death later than others
        OK(MPIX_Win_get_failed(win, &failed));
        OK(MPI_Group_size(failed, &count));
        if (count > 0) break;
        OK(MPI_Group_free(&failed));
    }
    EXPECT_INT(count, 1);
    OK(MPI_Group_translate_ranks(failed, 1, &who, all, &place));
    EXPECT_INT(place, doomed);
    OK(MPI_Group_free(&failed));
}

int main(int argc, char** argv) {
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    const int state = argc > 1 ? atoi(argv[1]) : kIdle;
    int is_revoked = 0, flag = 1, sum = 1;
    doomed = size - 1;
    CHECK(size > 2, "needs 3 ranks");
    OK(MPI_Win_allocate(4 * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win));
    OK(MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN));
    OK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MPI_Group all;
    OK(MPI_Comm_group(MPI_COMM_WORLD, &all));
    MPI_Group group_of_1 = group_of(all, 1), group_of_doomed = group_of(all, doomed);
    if (rank == doomed) die_in(state, group_of_1);
    const int met = MPI_Barrier(MPI_COMM_WORLD);  // the doomed rank may die before all have left it
    CHECK(met == MPI_SUCCESS || class_of(met) == MPIX_ERR_PROC_FAILED, "the barrier gave class %d", class_of(met));
    if (rank == 1) {
        find_death(state, group_of_doomed);
        OK(MPIX_Win_revoke(win));
        expect_failed(all);
    } else {
        EXPECT_INT(class_of(wait_for_rank_1(group_of_1)), MPIX_ERR_REVOKED);
    }
    OK(MPIX_Win_is_revoked(win, &is_revoked));
    EXPECT_INT(is_revoked, 1);
    EXPECT_INT(class_of(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win)), MPIX_ERR_REVOKED);
    EXPECT_INT(class_of(MPI_Win_fence(0, win)), MPIX_ERR_REVOKED);
    // Rank 0 frees the window before the others, which wait for it meanwhile.
    if (rank == 0) OK(MPI_Win_free(&win));
    const int agreed = MPIX_Comm_agree(MPI_COMM_WORLD, &flag);
    EXPECT_INT(class_of(agreed), MPIX_ERR_PROC_FAILED);
    if (rank != 0) {
        expect_failed(all);
        OK(MPI_Win_free(&win));
    }
    MPI_Comm living;
    OK(MPIX_Comm_shrink(MPI_COMM_WORLD, &living));
    OK(MPI_Win_allocate(4 * (MPI_Aint)sizeof(int), sizeof(int), MPI_INFO_NULL, living, &memory, &win));
    OK(MPI_Win_fence(0, win));
    OK(MPI_Put(&sum, 1, MPI_INT, 0, 1, 1, MPI_INT, win));
    OK(MPI_Win_fence(0, win));
    if (rank == 0) EXPECT_INT(memory[1], 1);
    OK(MPI_Win_free(&win));
    OK(MPI_Comm_free(&living));
    if (rank == 0) printf("a new window replaced that of rank %d\n", doomed);
    OK(MPI_Group_free(&group_of_1));
    OK(MPI_Group_free(&group_of_doomed));
    OK(MPI_Group_free(&all));
    OK(MPI_Finalize());
    return 0;
}
