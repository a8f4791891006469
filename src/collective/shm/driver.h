// Runs operations on a shared-memory stage: immediately, in a lane (a slot for one non-blocking operation), or in the order of a queue.
#pragma once

#include <utility>

#include "collective/shm/stage_owner.h"

namespace starling::collective {

class NodeDriver {
  public:
    enum class DriveMode : uint8_t {
        at_once,   ///< the operation runs to its end before the task is returned, after all operations in the queue
        in_lane,   ///< the task uses a lane if the operation fits, concurrently with others; otherwise it queues for the stage
        in_turn,   ///< the task queues for the stage when it is created
        has_turn,  ///< the task runs when awaited; its caller already has the turn
    };
    NodeDriver(NodeOwner& owner, DriveMode mode) : owner_(owner), mode_(mode) {}

    EngineStage& node() const { return *owner_.node(); }

    template <class Operation>
    Task operator()(Operation operation) const {
        if (mode_ == DriveMode::at_once) {
            if (!owner_.turns().none()) [[unlikely]]
                owner_.wait_for_queue();
            return Task::completed(node().run(operation));
        }
        return awaited(std::move(operation));
    }

  private:
    template <class Operation>
    [[gnu::noinline]] Task awaited(Operation operation) const {
        if (mode_ == DriveMode::in_lane && node().lanes().holds(operation)) {
            if constexpr (requires { operation.room_bytes(); })
                return node().lanes().drive(node().lanes().draw(), std::move(operation));
        }
        return node().drive(mode_ == DriveMode::has_turn ? QueueTurn() : QueueTurn(owner_.turns()), std::move(operation));
    }

    NodeOwner& owner_;
    DriveMode mode_;
};

}  // namespace starling::collective
