// CommCall::when_known(), for those who say what is called.
#pragma once

#include <utility>

#include "collective/comm_call.h"
#include "collective/shm/operation_queue.h"
#include "profile/collectives.h"

namespace starling::collective {

template <class Choose>
Task CommCall::later(Turn given, Task making, CommCall call, Choose choose) {
    Turn turn = std::move(given);
    co_await turn;
    co_await making;
    const Task task = choose(call);
    // It begins at once, before what is called next.
    turn.give_up();
    co_return co_await task;
}

template <class Choose>
Task CommCall::when_known(Choose choose) {
    if (!stage.is_known(comm_)) [[unlikely]] {
        Turn turn(stage.callers());
        Task making = stage.make(comm_, exchange);
        if (!blocking_) {
            view = View::all(exchange);
            return later(std::move(turn), std::move(making), *this, choose);
        }
        run_in_turn(std::move(turn), std::move(making));
        if (profile::watching) profile::expect_choice();  // that was none of the call's
    }
    view = View::all(exchange);
    // Of those that are under way at a time the parts within a host would follow each other, and so the whole of them, which
    // costs more than messages do.
    view.blocking = blocking_;
    view.stage = (blocking_ || alone_) && stage.node_of_host() ? &stage : nullptr;
    view.steering = blocking_ ? exchange.steering() : nullptr;
    if (view.steering) [[unlikely]]
        view.steering->begin();
    return choose(*this);
}

}  // namespace starling::collective
