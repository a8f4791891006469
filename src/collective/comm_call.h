// The collective operations as they are called on a communicator: whether they go through its node stage, in two levels or by
// messages is chosen here. Arguments as in collective.h and, between groups, in its namespace inter; checked by the caller.
// All members of the communicator make the same calls in the same order.
#pragma once

#include "collective/algorithm_choice.h"
#include "collective/channel_exchange.h"
#include "collective/core/buffers.h"
#include "collective/core/operation_label.h"
#include "collective/core/view.h"
#include "collective/shm/driver.h"

namespace starling::collective {

/// One call. Give it to one of the operations below once, then run or start what that returns. A blocking call may be over
/// by then.
class CommCall {
  public:
    CommCall(comm::Comm& comm, bool blocking)
        : exchange(exchange_of(comm)), stage(stage_of(comm)), comm_(comm), blocking_(blocking) {}
    /// A start of a persistent operation, which has an exchange and a stage to itself.
    CommCall(comm::Comm& comm, PlanExchange& its_exchange, NodeOwner& its_stage)
        : exchange(its_exchange), stage(its_stage), comm_(comm), blocking_(false), alone_(true) {}

    Exchange& exchange;
    NodeOwner& stage;
    View view{};  ///< everyone, under the tag of this call; when it has been given to an operation

    bool inter() const { return exchange.inter(); }
    /// The call as others see it, then.
    Label label(const char* function) const {
        return {function, &comm_.collective, alone_ ? 0 : exchange.calls(), view.tag, &stage};
    }

    /// What choose(*this) gives, a task, when it is known whether there is a node stage.
    template <class Choose>
    Task when_known(Choose choose);
    /// Whether the node stage serves the call, by the table.
    bool fits_node(Call call) {
        // Of blocks that differ members may not know the same, and so they don't choose by them here.
        if (!stage.node_of_all() || !call.uniform) return false;
        call.n = exchange.size;
        call.node = true;
        const Algorithm& algorithm = choose(view, call);
        if (!(algorithm.needs & kSharedMemory)) return false;
        note_choice(view, algorithm, call);
        return true;
    }
    NodeDriver on_node() const {
        return {stage, blocking_ ? NodeDriver::Mode::at_once : alone_ ? NodeDriver::Mode::has_turn : NodeDriver::Mode::in_lane};
    }
    /// The same for a rooted operation. Between groups some have no part in it, and don't know whether a lane would hold it.
    NodeDriver on_node_with_root() const {
        return !blocking_ && !alone_ && inter() ? NodeDriver(stage, NodeDriver::Mode::in_turn) : on_node();
    }

    /// Of a persistent operation.
    bool is_planned() const { return alone_; }
    /// Nothing else is under way on the stage while this is.
    bool has_stage_to_itself() const { return alone_ || blocking_; }

  private:
    static void run_in_turn(Turn turn, Task making);
    template <class Choose>
    static Task later(Turn turn, Task making, CommCall call, Choose choose);

    comm::Comm& comm_;
    bool blocking_;
    bool alone_ = false;  ///< on its stage: nothing else is under way there
};

/// Takes the operation that was made of `call` to its end. Blocks; told as what this thread has called.
int run(const CommCall& call, Task task);

Task barrier(CommCall& call);
Task bcast(CommCall& call, void* buffer, int64_t count, const Datatype& type, int root);
Task reduce(CommCall& call, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
Task allreduce(CommCall& call, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task gather(CommCall& call, const void* send, int64_t count, const Datatype& type, const Blocks& receive, int root);
Task scatter(CommCall& call, const Blocks& send, void* receive, int64_t count, const Datatype& type, int root);
Task allgather(CommCall& call, const void* send, int64_t count, const Datatype& type, const Blocks& receive);
Task alltoall(CommCall& call, bool in_place, const Blocks& send, const Blocks& receive);
Task reduce_scatter(CommCall& call, const void* send, void* receive, const Shares& shares, const Datatype& type, const Op& op);
Task scan(CommCall& call, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive);
/// A rooted operation between groups that this process has no part in: its root is MPI_PROC_NULL here.
Task no_part(CommCall& call);

}  // namespace starling::collective
