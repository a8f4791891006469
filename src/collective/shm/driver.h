// How operations on a node stage are carried out.
#pragma once

#include <utility>

#include "collective/shm/stage_owner.h"

namespace starling::collective {

class NodeDriver {
  public:
    enum class Mode : uint8_t {
        at_once,   ///< to the end, before the task is given back, after those who have a turn
        in_lane,   ///< awaited, with others at a time: where no lane holds it, in turn
        in_turn,   ///< awaited; the turn is taken when the task is made
        has_turn,  ///< awaited; the caller has the turn
    };
    NodeDriver(NodeOwner& owner, Mode mode) : owner_(owner), mode_(mode) {}

    Node& node() const { return *owner_.node(); }

    template <class Operation>
    Task operator()(Operation operation) const {
        if (mode_ == Mode::at_once) {
            if (!owner_.turns().none()) [[unlikely]]
                owner_.wait_for_turns();
            return Task::over(node().run(operation));
        }
        return awaited(std::move(operation));
    }

  private:
    template <class Operation>
    [[gnu::noinline]] Task awaited(Operation operation) const {
        if (mode_ == Mode::in_lane && node().lanes().holds(operation)) {
            if constexpr (requires { operation.room_bytes(); })
                return node().lanes().drive(node().lanes().draw(), std::move(operation));
        }
        return node().drive(mode_ == Mode::has_turn ? Turn() : Turn(owner_.turns()), std::move(operation));
    }

    NodeOwner& owner_;
    Mode mode_;
};

}  // namespace starling::collective
