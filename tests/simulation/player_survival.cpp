// The last step of some runs in which ranks die: the living members of the world agree, revoke it, and shrink it, while ranks die. Every call
// must end, and all living members must get the same results.

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

void Player::survive(const Step& step) {
    wait_for_all();
    const MPI_Comm world = comm(step);
    const auto size = static_cast<int>(script_.communities[step.comm].members.size());
    // All living ranks have done their steps when the agreement ends, so no rank needs the world any more.
    int flag = ~(1 << me_ % 31), is_revoked = 0;
    const int agreed = mpi_.Comm_agree(world, &flag);
    expect_class(agreed, "MPI_Comm_agree", {MPIX_ERR_PROC_FAILED});
    if (flag >> me_ % 31 & 1) fail_run("the agreed flag %x lacks this rank's", static_cast<unsigned>(flag));
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
    ok(mpi_.Comm_free(&living), "MPI_Comm_free");
    done().add(Feature::survival);
}

}  // namespace starling::simulation
