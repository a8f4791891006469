#include "mpi/rma/rma.h"

#include <cstring>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/pool.h"
#include "base/state.h"
#include "mpi/completion/request_handle.h"
#include "mpi/rma/window_check.h"
#include "rma/access.h"
#include "window/mapped_access.h"
#include "window/operation.h"
#include "window/revocation.h"

namespace starling::mpi {

namespace {

using datatype::Datatype;
using rma::LocalBuffer;
using window::WindowOperation;

/// One call on a window, with the library's lock held: the window, the checks and the first error. After an error all further checks do
/// nothing.
class RmaCall {
  public:
    RmaCall(MPI_Win handle, rma::AccessOperation what) : window_(window::from_handle(handle)) {
        operation.what = what;
        if (!window_) [[unlikely]]
            error_ = bad_win(handle);
    }

    WindowOperation operation;

    LocalBuffer side(const void* buffer, MPI_Count count, MPI_Datatype handle) {
        const Datatype* type = checked(count, handle);
        if (!type) return {};
        if (!buffer && type->predefined && count > 0 && type->size > 0) [[unlikely]]
            fail_with(MPI_ERR_BUFFER, "the buffer is a null pointer, but the count and the datatype specify data");
        return {const_cast<void*>(buffer), count, type};
    }
    void target(int rank, MPI_Aint disp, MPI_Count count, MPI_Datatype handle) {
        operation.rank = rank;
        operation.disp = disp;
        operation.count = count;
        operation.type = checked(count, handle);
        if (ok())
            if (const int error = check_rank(*window_, rank)) error_ = raise(*window_, error);
    }
    void op(MPI_Op handle) {
        operation.op = datatype::from_handle(handle);
        if (ok() && !operation.op) fail_with(MPI_ERR_OP, "the operation is null or not valid; was it freed?");
        if (ok() && handle == MPI_NO_OP && operation.what == rma::AccessOperation::update)
            fail_with(MPI_ERR_OP,
                      "MPI_NO_OP changes nothing: use it in MPI_Get_accumulate or MPI_Fetch_and_op, which return data");
    }
    void needs(const void* pointer, const char* name) {
        if (ok() && !pointer) error_ = null_argument(*window_, name);
    }
    /// Requires a predefined type, as the functions of one element do.
    void only_predefined() {
        if (ok() && operation.type->recipe) fail_with(MPI_ERR_TYPE, "this function requires a predefined datatype");
    }

    int run() {
        if (!ok()) [[unlikely]]
            return error_;
        if (operation.rank == MPI_PROC_NULL) return raise(*window_, without_target());
        return raise(*window_, window::run(*window_, operation));
    }
    int start(MPI_Request* request);

  private:
    bool ok() const { return error_ == MPI_SUCCESS; }
    /// Returns the result of an operation with MPI_PROC_NULL.
    int without_target() const { return window::is_revoked(*window_) ? window::why_revoked() : MPI_SUCCESS; }
    void fail_with(int error_class, const char* sentence) { error_ = raise(*window_, fail(error_class, "%s", sentence)); }
    const Datatype* checked(MPI_Count count, MPI_Datatype handle) {
        if (!ok()) return nullptr;
        const Datatype* type = datatype::from_handle(handle);
        if (!type || !type->committed) [[unlikely]]
            return fail_with(MPI_ERR_TYPE, "the datatype is a null handle, freed or not committed; use a committed datatype"),
                   nullptr;
        if (count < 0 || !datatype::packed_size_fits(*type, count)) [[unlikely]]
            return fail_with(MPI_ERR_COUNT, "the count is negative or too large"), nullptr;
        return type;
    }

    Window* window_;
    int error_ = MPI_SUCCESS;
};

/// A one-sided operation with a request handle, such as MPI_Rput.
struct PendingAccess : rma::Access {
    ~PendingAccess() { window::release_types(*this); }
};
STARLING_STATE NoDestroy<RequestPool<PendingAccess>> pending_access_storage;
constinit auto& pending_accesses = pending_access_storage.value;
constinit const progress::RequestClass kPendingAccess{
    .dispose = [](progress::Request& request) { pending_accesses.destroy(static_cast<PendingAccess&>(request)); }};

int RmaCall::start(MPI_Request* request) {
    if (!ok()) [[unlikely]]
        return error_;
    if (!request) return null_argument(*window_, "request");
    *request = completed_request();
    if (operation.rank == MPI_PROC_NULL) return raise(*window_, without_target());
    PendingAccess* access = pending_accesses.create(window_->comm, kPendingAccess);
    if (const int error = window::start(*window_, operation, *access)) {
        pending_accesses.destroy(*access);
        return raise(*window_, error);
    }
    *request = request_to_handle(access);
    return MPI_SUCCESS;
}

void describe_update(RmaCall& call, const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, MPI_Op op) {
    call.op(op);
    // MPI_NO_OP does not read the origin buffer, so its arguments are not checked.
    if (op != MPI_NO_OP) call.operation.origin = call.side(origin_addr, origin_count, origin_datatype);
}

// The put_far and get_far functions handle the accesses that the fast path (window/mapped_access.h) does not.

[[gnu::noinline]] int put_far(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                              MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
    RmaCall call(win, rma::AccessOperation::put);
    call.operation.origin = call.side(origin_addr, origin_count, origin_datatype);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.run();
}

[[gnu::noinline]] int get_far(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                              MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
    RmaCall call(win, rma::AccessOperation::get);
    call.operation.result = call.side(origin_addr, origin_count, origin_datatype);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.run();
}

[[gnu::noinline]] int accumulate_far(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype,
                                     int target_rank, MPI_Aint target_disp, MPI_Count target_count,
                                     MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    RmaCall call(win, rma::AccessOperation::update);
    describe_update(call, origin_addr, origin_count, origin_datatype, op);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.run();
}

[[gnu::noinline]] int fetch_and_op_far(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank,
                                       MPI_Aint target_disp, MPI_Op op, MPI_Win win) {
    RmaCall call(win, rma::AccessOperation::fetch_update);
    describe_update(call, origin_addr, 1, datatype, op);
    call.operation.result = call.side(result_addr, 1, datatype);
    call.target(target_rank, target_disp, 1, datatype);
    call.only_predefined();
    return call.run();
}

[[gnu::noinline]] int compare_and_swap_far(const void* origin_addr, const void* compare_addr, void* result_addr,
                                           MPI_Datatype datatype, int target_rank, MPI_Aint target_disp, MPI_Win win) {
    RmaCall call(win, rma::AccessOperation::compare_swap);
    call.operation.origin = call.side(origin_addr, 1, datatype);
    call.operation.result = call.side(result_addr, 1, datatype);
    call.target(target_rank, target_disp, 1, datatype);
    call.needs(compare_addr, "compare_addr");
    call.operation.compare = compare_addr;
    call.only_predefined();
    return call.run();
}

}  // namespace

int Put(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
    const Lock lock;
    Window* const window = window::from_handle(win);
    if (window && origin_count == target_count && origin_datatype == target_datatype &&
        window::put_mapped(*window, origin_addr, target_count, target_datatype, target_rank, target_disp)) [[likely]]
        return MPI_SUCCESS;
    return put_far(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win);
}

int Rput(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
    const Lock lock;
    RmaCall call(win, rma::AccessOperation::put);
    call.operation.origin = call.side(origin_addr, origin_count, origin_datatype);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.start(request);
}

int Get(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
        MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win) {
    const Lock lock;
    Window* const window = window::from_handle(win);
    if (window && origin_count == target_count && origin_datatype == target_datatype &&
        window::get_mapped(*window, origin_addr, target_count, target_datatype, target_rank, target_disp)) [[likely]]
        return MPI_SUCCESS;
    return get_far(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win);
}

int Rget(void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         MPI_Count target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request* request) {
    const Lock lock;
    RmaCall call(win, rma::AccessOperation::get);
    call.operation.result = call.side(origin_addr, origin_count, origin_datatype);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.start(request);
}

int Accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
               MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    const Lock lock;
    Window* const window = window::from_handle(win);
    if (window && op != MPI_NO_OP && origin_count == target_count && origin_datatype == target_datatype &&
        window::update_mapped(*window, origin_addr, nullptr, target_count, target_datatype, target_rank, target_disp, op))
        [[likely]]
        return MPI_SUCCESS;
    return accumulate_far(origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype,
                          op, win);
}

int Raccumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, int target_rank,
                MPI_Aint target_disp, MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win,
                MPI_Request* request) {
    const Lock lock;
    RmaCall call(win, rma::AccessOperation::update);
    describe_update(call, origin_addr, origin_count, origin_datatype, op);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.start(request);
}

int Get_accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
                   MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                   MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win) {
    const Lock lock;
    RmaCall call(win, rma::AccessOperation::fetch_update);
    describe_update(call, origin_addr, origin_count, origin_datatype, op);
    call.operation.result = call.side(result_addr, result_count, result_datatype);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.run();
}

int Rget_accumulate(const void* origin_addr, MPI_Count origin_count, MPI_Datatype origin_datatype, void* result_addr,
                    MPI_Count result_count, MPI_Datatype result_datatype, int target_rank, MPI_Aint target_disp,
                    MPI_Count target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win, MPI_Request* request) {
    const Lock lock;
    RmaCall call(win, rma::AccessOperation::fetch_update);
    describe_update(call, origin_addr, origin_count, origin_datatype, op);
    call.operation.result = call.side(result_addr, result_count, result_datatype);
    call.target(target_rank, target_disp, target_count, target_datatype);
    return call.start(request);
}

int Fetch_and_op(const void* origin_addr, void* result_addr, MPI_Datatype datatype, int target_rank, MPI_Aint target_disp,
                 MPI_Op op, MPI_Win win) {
    const Lock lock;
    Window* const window = window::from_handle(win);
    if (window && result_addr &&
        window::update_mapped(*window, origin_addr, result_addr, 1, datatype, target_rank, target_disp, op)) [[likely]]
        return MPI_SUCCESS;
    return fetch_and_op_far(origin_addr, result_addr, datatype, target_rank, target_disp, op, win);
}

int Compare_and_swap(const void* origin_addr, const void* compare_addr, void* result_addr, MPI_Datatype datatype,
                     int target_rank, MPI_Aint target_disp, MPI_Win win) {
    const Lock lock;
    Window* const window = window::from_handle(win);
    if (window && window::swap_mapped(*window, origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp))
        [[likely]]
        return MPI_SUCCESS;
    return compare_and_swap_far(origin_addr, compare_addr, result_addr, datatype, target_rank, target_disp, win);
}

}  // namespace starling::mpi
