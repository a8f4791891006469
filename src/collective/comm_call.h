// The collective operations as they are called on a communicator. This layer chooses whether a call uses the communicator's shared-memory
// stage, two levels or messages. Arguments are those of collective.h and, between groups, of its namespace inter; the caller has checked
// them. All members of the communicator make the same calls in the same order.
#pragma once

#include "base/clock.h"
#include "collective/algorithm_choice.h"
#include "collective/channel_exchange.h"
#include "collective/core/buffers.h"
#include "collective/core/operation_label.h"
#include "collective/core/stage_meter.h"
#include "collective/core/view.h"
#include "collective/shm/driver.h"

namespace starling::collective {

/// One collective call on a communicator. Pass it once to one of the operations below, then run or start the returned task. A blocking call
/// may be complete on return.
class CommCall {
  public:
    CommCall(comm::Comm& comm, bool blocking)
        : exchange(exchange_of(comm)), stage(stage_of(comm)), comm_(comm), blocking_(blocking) {}
    /// Constructs the call for one start of a persistent operation, which has an exchange and a stage for itself.
    CommCall(comm::Comm& comm, PlanExchange& its_exchange, NodeOwner& its_stage)
        : exchange(its_exchange), stage(its_stage), comm_(comm), blocking_(false), alone_(true) {}

    Exchange& exchange;
    NodeOwner& stage;
    View view{};  ///< all participants, under the tag of this call; set once an operation has been called

    bool inter() const { return exchange.inter(); }
    /// Returns the call's description for wait reports; valid once one of the operations below has been called with it.
    OperationLabel label(const char* function) const {
        return {function, &comm_.collective, alone_ ? 0 : exchange.calls(), view.tag, &stage};
    }

    /// Returns a task that runs the task choose(*this), once it is known whether the communicator has a shared-memory stage.
    template <class Choose>
    Task when_known(Choose choose);
    /// Returns whether the table, and for long calls of two processes their measured times, choose the shared-memory stage.
    bool fits_node(CallParameters call) {
        // Blocks of different sizes do not use the stage: members may know different sizes, so sizes must not decide.
        if (!stage.node_of_all() || !call.uniform) return false;
        call.n = exchange.size;
        call.node = true;
        const Algorithm& algorithm = choose(view, call);
        if (!(algorithm.needs & kSharedMemory)) return false;
        if (call.bytes >= StageMeter::kShortest && stage.meter() && blocking_ && messages_are_faster(call)) return false;
        note_choice(view, algorithm, call);
        return true;
    }
    NodeDriver on_node() const {
        return {stage, blocking_ ? NodeDriver::DriveMode::at_once
                       : alone_  ? NodeDriver::DriveMode::has_turn
                                 : NodeDriver::DriveMode::in_lane};
    }
    /// Returns the driver for a rooted operation. Between groups, the members of the root's group other than the root take no part, and do
    /// not know whether the operation fits into a lane. So all members queue for the stage.
    NodeDriver on_node_with_root() const {
        return !blocking_ && !alone_ && inter() ? NodeDriver(stage, NodeDriver::DriveMode::in_turn) : on_node();
    }

    /// Returns whether this is a start of a persistent operation.
    bool is_planned() const { return alone_; }
    /// Adds the time of the complete call to the stage's meter, if it is measured there.
    void complete() const {
        if (timed_) [[unlikely]]
            timed_->add(way_, now_ns() - began_);
    }
    /// Returns whether no other operation can use the stage while this one does.
    bool has_stage_to_itself() const { return alone_ || blocking_; }

  private:
    static void run_in_turn(QueueTurn turn, Task making);
    /// Returns whether the stage's meter chooses messages for a blocking call. If a decision is due, all members make it here.
    bool messages_are_faster(const CallParameters& call);
    template <class Choose>
    static Task later(QueueTurn turn, Task making, CommCall call, Choose choose);

    comm::Comm& comm_;
    bool blocking_;
    bool alone_ = false;  ///< whether the stage belongs to this operation alone
    StageWay way_ = StageWay::stage;
    StageTimes* timed_ = nullptr;  ///< the times to which this call's is added; null: it is not measured
    uint64_t began_ = 0;           ///< ns; only with timed_
};

/// Runs the operation's task to its end. Blocks; wait reports describe it as this thread's call.
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
/// Returns the task of a process whose root argument is MPI_PROC_NULL, in a rooted operation between groups: it transfers no data.
Task no_part(CommCall& call);

}  // namespace starling::collective
