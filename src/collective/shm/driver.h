// Runs operations on a shared-memory stage: at once, in a lane or in turn.
#pragma once

#include <utility>

#include "collective/shm/stage_owner.h"

namespace starling::collective {

class NodeDriver {
  public:
    enum class DriveMode : uint8_t {
        at_once,   ///< runs to the end before the task is returned, after all operations in the queue
        in_lane,   ///< awaited; uses a lane if one holds it, beside other operations; otherwise waits its turn
        in_turn,   ///< awaited; queues for the stage when the task is created
        has_turn,  ///< awaited; the caller already has the turn
    };
    NodeDriver(NodeOwner& owner, DriveMode mode) : owner_(owner), mode_(mode) {}

    EngineStage& node() const { return *owner_.node(); }

    template <class Operation>
    Task operator()(Operation operation) const {
        if (mode_ == DriveMode::at_once) {
            if (!owner_.turns().none()) [[unlikely]]
                owner_.wait_for_turns();
            return Task::over(node().run(operation));
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
