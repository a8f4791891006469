// One call of a collective function, blocking or not: its communicator, the checks that all share, and what
// must live as long as the operation.
#pragma once

#include <vector>

#include "collective/blocks.h"
#include "collective/channel_exchange.h"
#include "collective/request.h"
#include "collective/select.h"
#include "collective/view.h"
#include "datatype/op.h"
#include "mpi/check.h"
#include "mpi/counts.h"

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
    bool blocking() const { return blocking_; }
    comm::Comm& comm() const { return *comm_; }
    bool inter() const { return comm_->is_inter; }
    /// Everyone, under the tag of a new operation. Once per call, after all checks.
    collective::View view();
    /// The communicator's node stage, for a blocking call if there is one. After all checks: every member
    /// that gets here asks.
    collective::Node* node();
    /// The node stage if it serves this call; bytes, uniform and pieces as in collective::Call.
    collective::Node* node_for(collective::Kind kind, uint64_t bytes, bool uniform = true, bool pieces = false);
    /// The node stage of this host's members where the communicator is on several hosts, if two levels with it serve
    /// this call.
    collective::Node* part_for(collective::Kind kind, uint64_t bytes, bool commutative = true);
    const collective::Exchange& exchange() const { return collective::exchange_of(*comm_); }
    /// The operation is over already. Gives the empty task.
    Task finished(int error);

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
    bool node_is_part() const;
    void let_go();
    /// The node stage, which now says what call it serves.
    collective::Node* named(collective::Node* node) const {
        node->sync().tells.function = calling;
        return node;
    }
    collective::Label label() const;
    Lock lock_;
    comm::Comm* comm_;
    int error_ = MPI_SUCCESS;
    bool blocking_;
    bool keeps_ = false;  ///< holds references of what is named below: other threads may free it while the call idles
    bool asked_for_node_ = false;
    bool finished_ = false;
    bool drew_tag_ = false;
    collective::Node* node_ = nullptr;
    const Datatype* types_[2] = {nullptr, nullptr};  ///< kept alive by start()
    int type_count_ = 0;
    const Op* op_ = nullptr;
    std::vector<const Datatype*> block_types_[2];
};

}  // namespace starling::mpi
