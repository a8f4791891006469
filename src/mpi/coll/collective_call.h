// One call of a collective function, blocking or not: its communicator, the checks that all collective functions share, and the objects
// that must live as long as the operation.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "base/kept_memory.h"
#include "collective/collective_request.h"
#include "collective/comm_call.h"
#include "collective/core/blocks.h"
#include "datatype/op.h"
#include "mpi/common/check.h"
#include "mpi/common/counts.h"
#include "profile/collectives.h"

namespace starling::mpi {

using collective::Blocks;
using collective::Task;
using datatype::Datatype;
using datatype::Op;

/// The checked arguments of a persistent collective operation, from which each start creates a new task.
class PlannedCall {
  public:
    virtual ~PlannedCall() = default;
    virtual Task begin(collective::CommCall& to) const = 0;
};

/// A collective call on the entry point's stack. A failed check has already called the error handler; it stores the code to return in
/// error(), and all later checks do nothing.
class CollectiveCall {
  public:
    CollectiveCall(MPI_Comm handle, bool blocking);
    /// Selects the constructor for a persistent operation, which is only prepared.
    struct Persistent {};
    CollectiveCall(MPI_Comm handle, Persistent) : CollectiveCall(handle, false) { prepares_ = true; }
    ~CollectiveCall() {
        if (!has_ended_ && ok() && std::uncaught_exceptions() > 0) [[unlikely]]
            KeptMemory::mark_left();
        if (holds_) [[unlikely]]
            release_held();
    }
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;

    int error() const { return error_; }
    bool ok() const { return error_ == MPI_SUCCESS; }
    comm::Comm& comm() const { return *comm_; }
    bool inter() const { return comm_->is_inter; }
    /// Calls `body` with a CommCall after all checks, and returns the task that `body` creates. This call or the program keeps the objects
    /// alive to which the task refers.
    template <class Body>
    Task make(const Body& body) {
        if (prepares_) [[unlikely]] {
            plan_ = std::make_unique<Planned<Body>>(body);
            return {};
        }
        return body(now());
    }

    /// Returns the number of blocks in arguments with one block per process: the group's size, or the remote group's in an
    /// inter-communicator.
    int peers() const { return comm_->peer_count; }

    /// Checks the pointer through which a non-blocking call returns its request.
    void request(const MPI_Request* request);
    void fail_with(int error_class, const char* sentence);
    void intra_only();
    void root(int root);
    /// Returns the neighbors in the communicator's topology; null if there was an error.
    const comm::Neighborhood* neighborhood();
    /// Reports MPI_IN_PLACE in an argument where the standard does not allow it.
    void not_in_place(const void* buffer);
    /// Returns whether `buffer` is MPI_IN_PLACE; reports an error if it is and the communicator is an inter-communicator.
    bool in_place(const void* buffer);
    /// Reports an error if `shares`, that is if the call sends memory which it also receives into (mpi/common/buffer_overlap.h).
    void not_aliased(bool shares) {
        if (shares) [[unlikely]]
            fail_with(MPI_ERR_BUFFER,
                      "the send buffer and the receive buffer share memory; use MPI_IN_PLACE or separate "
                      "buffers");
    }

    // The next three functions check a handle, data() also the buffer. Each returns the object behind the handle, or null after an error.
    const Datatype* type(MPI_Datatype handle);
    const Datatype* data(const void* buffer, MPI_Count count, MPI_Datatype handle);
    const Op* op(MPI_Op handle, const Datatype* type);
    /// Checks a second buffer of a call whose datatype has been checked already.
    void buffer(const void* buffer, MPI_Count count, MPI_Datatype handle, const Datatype* type);
    /// Checks an array of `n` counts.
    void counts(Counts counts, int n);
    /// Checks counts and displacements of `n` blocks and returns their type. Without blocks the arrays may be null.
    const Datatype* blocks(int n, const void* buffer, Counts counts, Counts displacements, MPI_Datatype handle);
    /// Checks `n` blocks with a type for each, and returns the types; the array lives as long as the operation. `side` is 0 or 1: each call
    /// has two such arrays at most.
    const Datatype* const* typed_blocks(int n, const void* buffer, Counts counts, Counts displacements,
                                        const MPI_Datatype handles[], int side);

    /// Returns an array of `n` counts or displacements that the operation may refer to. A non-blocking operation gets a copy: programs free
    /// their array after the call although they should not (mpi4py does).
    Counts copy_array(Counts array, int n) { return !blocking_ && array ? copy(array, n) : array; }

    /// Runs the operation to completion and returns the code for the caller.
    int run(Task task);
    /// Starts the operation and stores the request's handle.
    int start(Task task, MPI_Request* request);
    /// Creates a persistent request for the operation. The task argument is ignored: each start creates one from the checked arguments.
    int prepare(Task task, MPI_Info info, MPI_Request* request);

  private:
    template <class Body>
    struct Planned final : PlannedCall {
        explicit Planned(const Body& its_body) : body(its_body) {}
        Task begin(collective::CommCall& to) const override { return body(to); }
        Body body;
    };
    template <class Pending>
    void attach_to(Pending& request);
    void release_held();
    Counts copy(Counts array, int n);
    collective::CommCall& now() {
        if (profile::watching) [[unlikely]]
            profile::begin_watched(comm_->context(), static_cast<uint32_t>(comm_->collective.roster().size()));
        return to_.emplace(*comm_, blocking_);
    }
    Lock lock_;
    KeptMemory::Use use_;  ///< the other members wait for this one, even if it is out of memory
    comm::Comm* comm_;
    int error_ = MPI_SUCCESS;
    bool blocking_;
    bool prepares_ = false;
    bool has_ended_ = false;  ///< whether this process's part of the call is done: run, started or prepared
    bool holds_ = false;  ///< whether this call holds references to the objects below, which other threads may free meanwhile
    std::optional<collective::CommCall> to_;
    const Datatype* types_[2] = {nullptr, nullptr};  ///< datatypes that start() retains
    int type_count_ = 0;
    const Op* op_ = nullptr;
    std::unique_ptr<PlannedCall> plan_;
    std::vector<std::unique_ptr<int64_t[]>> arrays_;
    std::vector<const Datatype*> block_types_[2];
};

}  // namespace starling::mpi
