#include "mpi/coll/collective_call.h"

#include <new>
#include <utility>

#include "base/counters.h"
#include "base/error.h"
#include "base/fortran_hooks.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "mpi/completion/request_handle.h"
#include "mpi/pt2pt/message_check.h"
#include "mpi/tool/tool_events.h"

namespace starling::mpi {

namespace {

/// Request of a non-blocking collective operation. It holds references to the communicator, types and operation, so the application may
/// free their handles meanwhile.
struct PendingCollective : collective::CollectiveRequest {
    const Datatype* types[2] = {nullptr, nullptr};
    const Op* op = nullptr;
    std::vector<const Datatype*> block_types[2];
    std::vector<std::unique_ptr<int64_t[]>> arrays;  ///< copies of counts and displacements
    SubstituteBuffer loan{};                         ///< replacement for the program's buffer; none if `release` is null

    ~PendingCollective() {
        if (loan.release) loan.release(loan.state);
        for (const Datatype* type : types)
            if (type) datatype::release(*type);
        for (const auto& side : block_types)
            for (const Datatype* type : side) datatype::release(*type);
        if (op) datatype::release(*op);
    }
};

void report_pending(const progress::Request& request, progress::WaitReporter& teller) {
    const collective::OperationLabel& label = static_cast<const PendingCollective&>(request).label;
    teller.of(label.function);
    collective::report_wait(label, teller);
}

STARLING_STATE NoDestroy<RequestPool<PendingCollective>> pending_collective_storage;
constinit auto& pending_collectives = pending_collective_storage.value;
constinit const progress::RequestClass kPendingCollective{
    .dispose = [](progress::Request& request) { pending_collectives.destroy(static_cast<PendingCollective&>(request)); },
    .report_wait = report_pending};

/// Runs when a request completes that uses a substitute buffer: finishes the use (SubstituteBuffer::finish).
void free_operation(progress::Request& r) {
    auto& request = static_cast<PendingCollective&>(r);
    request.loan.finish(request.loan.state);
    if (request.orphaned) request.operations->dispose(request);
}
constinit const progress::RequestClass kPendingWithLoan{
    .dispose = kPendingCollective.dispose, .report_wait = report_pending, .completed = free_operation};

/// A persistent collective operation. Members may start the persistent operations of one communicator in different orders. So each
/// operation has its own message tag and, if members share memory, its own part of the shared memory.
struct PersistentCollective : PendingCollective {
    struct Own {
        explicit Own(comm::Comm& comm) : exchange(comm) {}
        collective::PlanExchange exchange;
        collective::NodeOwner stage;
    };
    std::unique_ptr<Own> own;
    std::unique_ptr<PlannedCall> plan;
    uint64_t number = 0;  ///< number of the operation by which tools identify it
};

STARLING_STATE NoDestroy<RequestPool<PersistentCollective>> persistent_storage;
constinit auto& persistent = persistent_storage.value;

void notify_tools_of(ToolEvent event, const PersistentCollective& request) {
    if (tools_listen()) notify_tools(event, {comm_of(request)->context(), request.number});
}

void end(progress::Request& r) {
    auto& request = static_cast<PersistentCollective&>(r);
    --counters.plans;
    notify_tools_of(ToolEvent::plan_freed, request);
    persistent.destroy(request);
}

int restart(PersistentCollective& request) {
    KeptMemory::refill();
    const KeptMemory::Use use;
    request.outcome = {};
    request.done = false;
    if (request.loan.begin) request.loan.begin(request.loan.state);
    if (comm_of(request)->collective.revoked()) request.own->stage.revoke();
    collective::CommCall to(*comm_of(request), request.own->exchange, request.own->stage);
    Task task = request.plan->begin(to);
    request.label = to.label(request.label.function);
    ++counters.plans_started;
    collective::start(std::move(task), request);
    notify_tools_of(ToolEvent::plan_started, request);
    return MPI_SUCCESS;
}

/// Starts a persistent operation. Ends the process if not even the reserve suffices, because the other members wait for it.
int start_again(progress::Request& request) {
    try {
        return restart(static_cast<PersistentCollective&>(request));
    } catch (const std::bad_alloc&) { KeptMemory::end(); }
}

constinit const progress::RequestClass kPersistent{.dispose = end, .start = start_again, .report_wait = report_pending};
constinit const progress::RequestClass kPersistentWithLoan{
    .dispose = end, .start = start_again, .report_wait = report_pending, .completed = free_operation};

bool attach_loan(progress::Request* request, const SubstituteBuffer& loan) {
    if (!request || (request->operations != &kPendingCollective && request->operations != &kPersistent)) return false;
    static_cast<PendingCollective&>(*request).loan = loan;
    if (request->operations == &kPersistent) {
        request->operations = &kPersistentWithLoan;
    } else {
        request->operations = &kPendingWithLoan;
        if (request->done) loan.finish(loan.state);
    }
    return true;
}

}  // namespace

extern "C" [[gnu::visibility("default")]] bool starling_lend(MPI_Request request, const SubstituteBuffer* loan) {
    const Lock lock;
    return attach_loan(request_from_handle(request), *loan);
}

CollectiveCall::CollectiveCall(MPI_Comm handle, bool blocking) : comm_(comm::from_handle(handle)), blocking_(blocking) {
    KeptMemory::refill();
    if (!comm_) [[unlikely]] {
        error_ = bad_comm(handle);
    } else if (threads_at_once()) [[unlikely]] {
        comm_->retain();
        holds_ = true;
    }
}

void CollectiveCall::release_held() {
    for (int i = 0; i < type_count_; ++i) datatype::release(*types_[i]);
    for (const auto& side : block_types_)
        for (const Datatype* type : side)
            if (type) datatype::release(*type);
    if (op_) datatype::release(*op_);
    comm_->release();
}

void CollectiveCall::request(const MPI_Request* request) {
    if (ok() && !request) [[unlikely]]
        error_ = null_argument(comm_, "request");
}

void CollectiveCall::fail_with(int error_class, const char* sentence) {
    if (ok()) error_ = raise(comm_, fail(error_class, "%s", sentence));
}

void CollectiveCall::intra_only() {
    if (ok() && comm_->is_inter) [[unlikely]]
        error_ = wrong_kind_of_comm(comm_);
}

void CollectiveCall::root(int root) {
    if (ok() && !valid_root(*comm_, root)) [[unlikely]]
        error_ = bad_root(comm_, root);
}

const comm::Neighborhood* CollectiveCall::neighborhood() {
    const comm::Neighborhood* found = nullptr;
    if (ok())
        if (const int error = comm::neighborhood_of(*comm_, found)) error_ = raise(comm_, error);
    return found;
}

void CollectiveCall::not_in_place(const void* buffer) {
    if (buffer == MPI_IN_PLACE) [[unlikely]]
        fail_with(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed for this buffer");
}

bool CollectiveCall::in_place(const void* buffer) {
    if (buffer != MPI_IN_PLACE) return false;
    if (ok() && comm_->is_inter) [[unlikely]]
        fail_with(MPI_ERR_BUFFER, "MPI_IN_PLACE is not allowed with an inter-communicator");
    return true;
}

const Datatype* CollectiveCall::type(MPI_Datatype handle) {
    const Datatype* type = datatype::from_handle(handle);
    if (!ok()) return nullptr;
    if (!type || !type->committed) [[unlikely]] {
        error_ = bad_type(comm_, handle);
        return nullptr;
    }
    if (holds_) [[unlikely]]
        datatype::retain(*type);
    types_[type_count_++] = type;
    return type;
}

const Datatype* CollectiveCall::data(const void* buffer, MPI_Count count, MPI_Datatype handle) {
    const Datatype* found = type(handle);
    if (!found) return nullptr;
    error_ = check_data(comm_, found, handle, buffer, count);
    return ok() ? found : nullptr;
}

void CollectiveCall::buffer(const void* buffer, MPI_Count count, MPI_Datatype handle, const Datatype* type) {
    if (ok()) error_ = check_data(comm_, type, handle, buffer, count);
}

void CollectiveCall::counts(Counts counts, int n) {
    if (ok() && !counts) [[unlikely]]
        error_ = null_argument(comm_, "counts");
    for (int i = 0; i < n && ok(); ++i)
        if (counts[i] < 0) [[unlikely]]
            error_ = bad_count(comm_, counts[i]);
}

const Op* CollectiveCall::op(MPI_Op handle, const Datatype* type) {
    if (!ok()) return nullptr;
    op_ = datatype::from_handle(handle);
    if (op_ && holds_) [[unlikely]]
        datatype::retain(*op_);
    if (!op_) [[unlikely]]
        error_ = bad_handle(comm_, MPI_ERR_OP, "operation");
    else if (!datatype::op_valid_for(*op_, *type)) [[unlikely]]
        fail_with(MPI_ERR_OP, "the operation is not defined for this datatype");
    return ok() ? op_ : nullptr;
}

const Datatype* CollectiveCall::blocks(int n, const void* buffer, Counts counts, Counts displacements, MPI_Datatype handle) {
    const Datatype* found = type(handle);
    if (!found) return nullptr;
    if (n > 0 && (!counts || !displacements)) [[unlikely]] {
        error_ = null_argument(comm_, counts ? "displacements" : "counts");
        return nullptr;
    }
    for (int i = 0; i < n && ok(); ++i) {
        // `buffer` may be MPI_BOTTOM, so the address is computed as an integer.
        const auto offset = static_cast<uint64_t>(displacements[i]) * static_cast<uint64_t>(found->extent);
        const auto* address = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(buffer) + offset);
        error_ = check_data(comm_, found, handle, address, counts[i]);
    }
    return ok() ? found : nullptr;
}

const Datatype* const* CollectiveCall::typed_blocks(int n, const void* buffer, Counts counts, Counts displacements,
                                                    const MPI_Datatype handles[], int side) {
    if (!ok()) return nullptr;
    if (n > 0 && (!counts || !displacements || !handles)) [[unlikely]] {
        error_ = null_argument(comm_, !counts ? "counts" : !displacements ? "displacements" : "types");
        return nullptr;
    }
    std::vector<const Datatype*>& types = block_types_[side];
    types.resize(static_cast<size_t>(n));
    for (int i = 0; i < n; ++i) {
        const Datatype* type = datatype::from_handle(handles[i]);
        // The type of a block without elements is not checked; MPI_BYTE stands in for an invalid handle.
        if (counts[i] == 0 && !type) type = &datatype::predefined(MPI_BYTE);
        // Displacements are in bytes. `buffer` may be MPI_BOTTOM, so the address is computed as an integer.
        const auto address = reinterpret_cast<uintptr_t>(buffer) + static_cast<uintptr_t>(displacements[i]);
        error_ = check_data(comm_, type, handles[i], reinterpret_cast<const void*>(address), counts[i]);
        if (!ok()) return nullptr;
        if (holds_) datatype::retain(*type);
        types[static_cast<size_t>(i)] = type;
    }
    return types.data();
}

Counts CollectiveCall::copy(Counts array, int n) {
    auto& copied = arrays_.emplace_back(std::make_unique<int64_t[]>(static_cast<size_t>(n)));
    for (int i = 0; i < n; ++i) copied[static_cast<size_t>(i)] = array[i];
    return Counts(copied.get());
}

int CollectiveCall::run(Task task) {
    if (!ok()) [[unlikely]]
        return error_;
    const int error = to_ ? collective::run(*to_, std::move(task)) : task.result();
    has_ended_ = true;
    return error == MPI_SUCCESS ? MPI_SUCCESS : raise(comm_, error);
}

template <class Pending>
void CollectiveCall::attach_to(Pending& request) {
    for (int i = 0; i < type_count_; ++i) datatype::retain(*(request.types[i] = types_[i]));
    for (int side = 0; side < 2; ++side) {
        // The request takes over the array of types, because the task reads it in place, and also this call's references to the types, if
        // it holds any.
        if (!holds_)
            for (const Datatype* type : block_types_[side]) datatype::retain(*type);
        request.block_types[side] = std::move(block_types_[side]);
    }
    if (op_) datatype::retain(*(request.op = op_));
    request.arrays = std::move(arrays_);
}

int CollectiveCall::start(Task task, MPI_Request* request) {
    if (!ok()) [[unlikely]]
        return error_;
    PendingCollective* made = pending_collectives.create(comm_, kPendingCollective);
    attach_to(*made);
    made->label = to_->label(calling);
    collective::start(std::move(task), *made);
    *request = request_to_handle(made);
    has_ended_ = true;
    return MPI_SUCCESS;
}

int CollectiveCall::prepare(Task, MPI_Info info, MPI_Request* request) {
    if (ok() && info != MPI_INFO_NULL && !comm::from_handle(info)) error_ = bad_handle(comm_, MPI_ERR_INFO, "info object");
    if (!ok()) return error_;
    auto own = std::make_unique<PersistentCollective::Own>(*comm_);
    PersistentCollective* made = persistent.create(comm_, kPersistent);
    made->persistent = true;
    made->active = false;
    made->plan = std::move(plan_);
    made->own = std::move(own);
    made->label.function = calling;
    made->number = ++counters.plans_made;
    ++counters.plans;
    attach_to(*made);
    *request = request_to_handle(made);
    has_ended_ = true;
    notify_tools_of(ToolEvent::plan_made, *made);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
