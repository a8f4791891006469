// One call of a collective function, blocking or not: its communicator, the checks that all share, and what
// must live as long as the operation.
#pragma once

#include <memory>
#include <optional>
#include <vector>

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

/// A collective call that is made again and again: what its arguments came to.
class PlannedCall {
  public:
    virtual ~PlannedCall() = default;
    virtual Task begin(collective::CommCall& to) const = 0;
};

/// Made on the entry point's stack. Checks record the code to return in error() (they have called the error
/// handler already) and every further one does nothing then.
class CollectiveCall {
  public:
    CollectiveCall(MPI_Comm handle, bool blocking);
    /// Of a persistent operation, which is only prepared.
    struct Persistent {};
    CollectiveCall(MPI_Comm handle, Persistent) : CollectiveCall(handle, false) { prepares_ = true; }
    ~CollectiveCall() {
        if (keeps_) [[unlikely]]
            let_go();
    }
    CollectiveCall(const CollectiveCall&) = delete;
    CollectiveCall& operator=(const CollectiveCall&) = delete;

    int error() const { return error_; }
    bool ok() const { return error_ == MPI_SUCCESS; }
    comm::Comm& comm() const { return *comm_; }
    bool inter() const { return comm_->is_inter; }
    /// The task that `body`, given a CommCall, makes, after all checks. What it refers to the call keeps, or the program.
    template <class Body>
    Task make(const Body& body) {
        if (prepares_) [[unlikely]] {
            plan_ = std::make_unique<Planned<Body>>(body);
            return {};
        }
        return body(now());
    }

    /// Members of the group that blocks are counted by: remote in an inter-communicator.
    int peers() const { return comm_->peer_count; }

    /// Where a non-blocking call puts its handle.
    void request(const MPI_Request* request);
    void fail_with(int error_class, const char* sentence);
    void intra_only();
    void root(int root);
    /// Who the communicator's topology says are neighbours; null if there was an error.
    const comm::Neighborhood* neighborhood();
    /// MPI_IN_PLACE where the standard does not allow it.
    void not_in_place(const void* buffer);
    /// MPI_IN_PLACE as `buffer` has no place in an inter-communicator. Gives whether the call is in place.
    bool in_place(const void* buffer);
    /// `shares`: that the call sends memory which it receives into (mpi/common/buffer_overlap.h).
    void not_aliased(bool shares) {
        if (shares) [[unlikely]]
            fail_with(MPI_ERR_BUFFER, "memory is both sent and received into; use MPI_IN_PLACE or a buffer of its own");
    }

    // These give the object, or null if there was an error.
    const Datatype* type(MPI_Datatype handle);
    const Datatype* data(const void* buffer, MPI_Count count, MPI_Datatype handle);
    const Op* op(MPI_Op handle, const Datatype* type);
    /// A further buffer of a type that was checked before.
    void buffer(const void* buffer, MPI_Count count, MPI_Datatype handle, const Datatype* type);
    /// An array of `n` counts.
    void counts(Counts counts, int n);
    /// Counts and displacements of `n` blocks. The arrays may be null if there are none.
    const Datatype* blocks(int n, const void* buffer, Counts counts, Counts displacements, MPI_Datatype handle);
    /// The same with a type per block; the array lives as long as the operation. `side`: 0 or 1, which
    /// array it is.
    const Datatype* const* typed_blocks(int n, const void* buffer, Counts counts, Counts displacements,
                                        const MPI_Datatype handles[], int side);

    /// An array of `n` counts or displacements as the operation may refer to it. One that goes on after the call has a copy: programs
    /// free theirs then, though they ought not to (mpi4py does).
    Counts keep(Counts array, int n) { return !blocking_ && array ? copy(array, n) : array; }

    /// Runs the operation to its end and gives the code to return.
    int run(Task task);
    /// Starts it behind a request.
    int start(Task task, MPI_Request* request);
    /// Puts it behind a persistent request; `task` is empty.
    int prepare(Task task, MPI_Info info, MPI_Request* request);

  private:
    template <class Body>
    struct Planned final : PlannedCall {
        explicit Planned(const Body& its_body) : body(its_body) {}
        Task begin(collective::CommCall& to) const override { return body(to); }
        Body body;
    };
    template <class Pending>
    void hand_over(Pending& request);
    void let_go();
    Counts copy(Counts array, int n);
    collective::CommCall& now() {
        if (profile::watching) [[unlikely]]
            profile::begin_watched(comm_->context(), static_cast<uint32_t>(comm_->collective.roster().size()));
        return to_.emplace(*comm_, blocking_);
    }
    Lock lock_;
    comm::Comm* comm_;
    int error_ = MPI_SUCCESS;
    bool blocking_;
    bool prepares_ = false;
    bool keeps_ = false;  ///< holds references of what is named below: other threads may free it while the call idles
    std::optional<collective::CommCall> to_;
    const Datatype* types_[2] = {nullptr, nullptr};  ///< kept alive by start()
    int type_count_ = 0;
    const Op* op_ = nullptr;
    std::unique_ptr<PlannedCall> plan_;
    std::vector<std::unique_ptr<int64_t[]>> arrays_;
    std::vector<const Datatype*> block_types_[2];
};

}  // namespace starling::mpi
