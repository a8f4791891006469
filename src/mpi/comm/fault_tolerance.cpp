#include "mpi/comm/fault_tolerance.h"

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/shim_hooks.h"
#include "base/state.h"
#include "collective/collective_request.h"
#include "collective/survivors/agreements.h"
#include "comm/failures.h"
#include "mpi/common/check.h"
#include "mpi/completion/request_handle.h"
#include "progress/engine.h"

namespace starling::mpi {

using collective::Task;
using comm::Comm;

namespace {

/// A non-blocking agreement or shrink in progress.
struct SurvivorsRequest : collective::CollectiveRequest {
    Comm* made = nullptr;
};
STARLING_STATE NoDestroy<RequestPool<SurvivorsRequest>> survivors_pool_storage;
constinit auto& survivors_pool = survivors_pool_storage.value;
constexpr progress::RequestClass kSurvivorsClass{
    .dispose = [](progress::Request& request) { survivors_pool.destroy(static_cast<SurvivorsRequest&>(request)); }};

/// Shrinks a communicator and stores the new handle when it exists.
Task shrink_later(Comm& comm, Comm*& made, MPI_Comm* newcomm) {
    const KeptMemory kept;
    if (const int error = co_await collective::shrink(comm, made)) co_return error;
    *newcomm = comm::to_handle(made);
    if (foreign) {
        const OutsideLibrary outside;
        foreign->comm_made(newcomm);
    }
    co_return MPI_SUCCESS;
}

}  // namespace

int Comm_revoke(MPI_Comm comm) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    comm::revoke(*c);
    return MPI_SUCCESS;
}

int Comm_is_revoked(MPI_Comm comm, int* flag) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!flag) return null_argument(c, "flag");
    *flag = comm::poll_revocation(*c);
    return MPI_SUCCESS;
}

int Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!newcomm) return null_argument(c, "newcomm");
    const comm::ReferenceGuard kept(c);
    Comm* made = nullptr;
    const int error = collective::run(collective::shrink(*c, made));
    *newcomm = comm::to_handle(made);
    return raise(c, error);
}

int Comm_ishrink(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!newcomm || !request) return null_argument(c, newcomm ? "request" : "newcomm");
    *newcomm = MPI_COMM_NULL;
    SurvivorsRequest* made = survivors_pool.create(c, kSurvivorsClass);
    *request = request_to_handle(made);
    collective::start(shrink_later(*c, made->made, newcomm), *made);
    return MPI_SUCCESS;
}

int Comm_failure_ack(MPI_Comm comm) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    comm::acknowledge(*c, comm::known_failures(*c).ranks.size());
    return MPI_SUCCESS;
}

int Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!failedgrp) return null_argument(c, "failedgrp");
    *failedgrp = comm::add_handle(comm::failed_group(*c, c->failures.acknowledged));
    return MPI_SUCCESS;
}

int Comm_get_failed(MPI_Comm comm, MPI_Group* failedgrp) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!failedgrp) return null_argument(c, "failedgrp");
    *failedgrp = comm::add_handle(comm::poll_failures(*c));
    return MPI_SUCCESS;
}

int Comm_ack_failed(MPI_Comm comm, int num_to_ack, int* num_acked) {
    Lock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!num_acked) return null_argument(c, "num_acked");
    if (num_to_ack < 0)
        return raise(c, fail(MPI_ERR_ARG, "the number of failures to acknowledge is %d, which is negative", num_to_ack));
    comm::acknowledge(*c, static_cast<size_t>(num_to_ack));
    *num_acked = static_cast<int>(c->failures.acknowledged);
    return MPI_SUCCESS;
}

int Comm_agree(MPI_Comm comm, int* flag) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!flag) return null_argument(c, "flag");
    const comm::ReferenceGuard kept(c);
    return raise(c, collective::run(collective::agree_among_living(*c, *flag)));
}

int Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request) {
    MakingLock lock;
    Comm* c = comm::from_handle(comm);
    if (!c) return bad_comm(comm);
    if (!flag || !request) return null_argument(c, flag ? "request" : "flag");
    SurvivorsRequest* made = survivors_pool.create(c, kSurvivorsClass);
    *request = request_to_handle(made);
    collective::start(collective::agree_among_living(*c, *flag), *made);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
