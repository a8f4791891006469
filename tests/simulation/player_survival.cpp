// The last step of some runs in which ranks die: the living members of the world agree, revoke it, and shrink it, while ranks die. In some
// runs members finalize instead of revoking it. Every call must end, and all living members must get the same results. Then one of the living
// members revokes a window for which the others wait.

#include "daemon.h"
#include "player.h"

namespace starling::simulation {

/// Ends the run unless the call succeeded or failed with one of these classes.
void Player::expect_class(int code, const char* what, std::initializer_list<int> classes) {
    if (code == MPI_SUCCESS) return;
    int error = 0;
    mpi_.Error_class(code, &error);
    for (const int allowed : classes)
        if (error == allowed) return;
    ok(code, what);
}

/// Waits in a call in which rank 0 of the window takes no part. Returns its result.
int Player::wait_for_revocation(int what, MPI_Win win, MPI_Group all) {
    int64_t one = 1, before = 0;
    int code = MPI_SUCCESS;
    switch (what) {
        case 0:
            return mpi_.Win_fence(0, win);
        case 1:
            code = mpi_.Win_post(all, 0, win);
            return code ? code : mpi_.Win_wait(win);
        case 2:  // Rank 0 holds its lock. It may have freed the window before this rank learns of the revocation.
            while (code == MPI_SUCCESS) {
                code = mpi_.Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
                if (code == MPI_SUCCESS) code = mpi_.Win_unlock(0, win);
            }
            return code;
        default:
            code = mpi_.Win_lock_all(0, win);
            while (code == MPI_SUCCESS) {
                code = mpi_.Fetch_and_op(&one, &before, MPI_INT64_T, 0, 0, MPI_SUM, win);
                if (code == MPI_SUCCESS) code = mpi_.Win_flush(0, win);
            }
            return code;
    }
}

/// Creates a window of the living members. Its rank 0 revokes it while the others wait in a call on it, and each frees it on its own.
void Player::revoke_window(const Step& step, MPI_Comm living, int rank) {
    MPI_Win win = MPI_WIN_NULL;
    int64_t* memory = nullptr;
    const int made = mpi_.Win_allocate(8, 8, MPI_INFO_NULL, living, &memory, &win);
    expect_class(made, "MPI_Win_allocate", {MPIX_ERR_PROC_FAILED});
    if (made == MPI_SUCCESS) ok(mpi_.Win_set_errhandler(win, MPI_ERRORS_RETURN), "MPI_Win_set_errhandler");
    const int what = step.count % 4;
    if (made == MPI_SUCCESS && rank == 0 && what == 2) ok(mpi_.Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win), "MPI_Win_lock");
    int all_have_it = made == MPI_SUCCESS, is_revoked = 0;
    expect_class(mpi_.Comm_agree(living, &all_have_it), "MPI_Comm_agree", {MPIX_ERR_PROC_FAILED});
    if (made != MPI_SUCCESS) return;
    if (all_have_it && rank != 0) {
        MPI_Group all = MPI_GROUP_NULL;
        ok(mpi_.Comm_group(living, &all), "MPI_Comm_group");
        const int code = wait_for_revocation(what, win, all);
        expect_class(code, "a call on the revoked window", {MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED});
        if (code == MPI_SUCCESS) fail_run("a call without rank 0 of the window has ended with success");
        ok(mpi_.Group_free(&all), "MPI_Group_free");
    }
    ok(mpi_.Win_revoke(win), "MPIX_Win_revoke");
    ok(mpi_.Win_is_revoked(win, &is_revoked), "MPIX_Win_is_revoked");
    if (!is_revoked) fail_run("the window is not revoked");
    const int fenced = mpi_.Win_fence(0, win);
    expect_class(fenced, "MPI_Win_fence", {MPIX_ERR_REVOKED});
    if (fenced == MPI_SUCCESS) fail_run("MPI_Win_fence of a revoked window has succeeded");
    ok(mpi_.Win_free(&win), "MPI_Win_free");
}

void Player::survive(const Step& step) {
    wait_for_all();
    const MPI_Comm world = comm(step);
    const auto size = static_cast<int>(script_.communities[step.comm].members.size());
    // All living ranks have done their steps when the agreement ends, so no rank needs the world any more.
    int flag = ~(1 << me_ % 31), is_revoked = 0;
    const int agreed = mpi_.Comm_agree(world, &flag);
    expect_class(agreed, "MPI_Comm_agree", {MPIX_ERR_PROC_FAILED});
    if (flag >> me_ % 31 & 1) fail_run("the agreed flag %x lacks this rank's", static_cast<unsigned>(flag));
    if (!script_.leaving.empty() && script_.leaving[me_]) return done().add(Feature::leaving);
    if (static_cast<int>(me_) == step.from || step.count == 0) ok(mpi_.Comm_revoke(world), "MPI_Comm_revoke");
    int word = 0, sum = 0;
    if (static_cast<int>(me_) != step.from) {
        const int code =
            step.count % 2 ? mpi_.Recv(&word, 1, MPI_INT, step.from, 100'001, world, MPI_STATUS_IGNORE) : mpi_.Barrier(world);
        expect_class(code, "a call on the revoked world", {MPIX_ERR_PROC_FAILED, MPIX_ERR_REVOKED});
        if (code == MPI_SUCCESS) fail_run("a call without rank %d has ended with success", step.from);
        ok(mpi_.Comm_revoke(world), "MPI_Comm_revoke");
    }
    ok(mpi_.Comm_is_revoked(world, &is_revoked), "MPI_Comm_is_revoked");
    if (!is_revoked) fail_run("the world is not revoked");
    MPI_Comm living = MPI_COMM_NULL;
    ok(mpi_.Comm_shrink(world, &living), "MPI_Comm_shrink");
    // The members of the new communicator tell each other what they have got: the sum is right only if all have the same.
    int rank = -1, members = -1;
    ok(mpi_.Comm_rank(living, &rank), "MPI_Comm_rank");
    ok(mpi_.Comm_size(living, &members), "MPI_Comm_size");
    if (members < 1 || members > size) fail_run("the shrunk world has %d members", members);
    int error = MPI_SUCCESS;
    if (agreed != MPI_SUCCESS) mpi_.Error_class(agreed, &error);
    word = flag ^ error ^ members * 1000;
    const int code = mpi_.Allreduce(&word, &sum, 1, MPI_INT, MPI_BXOR, living);
    expect_class(code, "MPI_Allreduce", {MPIX_ERR_PROC_FAILED});
    if (code == MPI_SUCCESS && sum != (members % 2 ? word : 0)) fail_run("the survivors have different results");
    revoke_window(step, living, rank);
    ok(mpi_.Comm_free(&living), "MPI_Comm_free");
    done().add(Feature::survival);
}

}  // namespace starling::simulation
