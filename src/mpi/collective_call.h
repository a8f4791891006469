// One call of a collective function, blocking or not: its communicator, the checks that all share, and what
// must live as long as the operation.
#pragma once

#include <optional>
#include <vector>

#include "collective/blocks.h"
#include "collective/comm_call.h"
#include "collective/request.h"
#include "datatype/op.h"
#include "mpi/check.h"
#include "mpi/counts.h"
#include "profile/collectives.h"

namespace starling::mpi {

using collective::Blocks;
using collective::Task;
using datatype::Datatype;
using datatype::Op;

/// Made on the entry point's stack. Checks record the code to return in error() (they have called the error
/// handler already) and every further one does nothing then.
class CollectiveCall {
  public:
    CollectiveCall(MPI_Comm handle, bool blocking);
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
    /// To be given to the operation, after all checks.
    collective::CommCall& now() {
        if (profile::watching) [[unlikely]]
            profile::begin_watched(comm_->context(), static_cast<uint32_t>(comm_->collective.roster().size()));
        return to_.emplace(*comm_, blocking_);
    }

    /// Members of the group that blocks are counted by: remote in an inter-communicator.
    int peers() const { return comm_->peer_count; }

    /// Where a non-blocking call puts its handle.
    void request(const MPI_Request* request);
    void fail_with(int error_class, const char* sentence);
    void intra_only();
    void root(int root);
    /// MPI_IN_PLACE where the standard does not allow it.
    void not_in_place(const void* buffer);
    /// MPI_IN_PLACE as `buffer` has no place in an inter-communicator. Gives whether the call is in place.
    bool in_place(const void* buffer);
    /// Send and receive buffer are the same memory.
    void not_aliased(const void* send, const void* receive, MPI_Count count);

    // These give the object, or null if there was an error.
    const Datatype* type(MPI_Datatype handle);
    const Datatype* data(const void* buffer, MPI_Count count, MPI_Datatype handle);
    const Op* op(MPI_Op handle, const Datatype* type);
    /// A further buffer of a type that was checked before.
    void buffer(const void* buffer, MPI_Count count, MPI_Datatype handle, const Datatype* type);
    /// An array of `n` counts.
    void counts(Counts counts, int n);
    /// Counts and displacements of one block per peer. `displacements` may be null if there are no peers.
    const Datatype* blocks(const void* buffer, Counts counts, Counts displacements, MPI_Datatype handle);
    /// The same with a type per block; the array lives as long as the operation. `side`: 0 or 1, which
    /// array it is.
    const Datatype* const* typed_blocks(const void* buffer, Counts counts, Counts displacements, const MPI_Datatype handles[],
                                        int side);

    /// Runs the operation to its end and gives the code to return.
    int run(Task task);
    /// Starts it behind a request.
    int start(Task task, MPI_Request* request);

  private:
    void let_go();
    Lock lock_;
    comm::Comm* comm_;
    int error_ = MPI_SUCCESS;
    bool blocking_;
    bool keeps_ = false;  ///< holds references of what is named below: other threads may free it while the call idles
    std::optional<collective::CommCall> to_;
    const Datatype* types_[2] = {nullptr, nullptr};  ///< kept alive by start()
    int type_count_ = 0;
    const Op* op_ = nullptr;
    std::vector<const Datatype*> block_types_[2];
};

}  // namespace starling::mpi
