// Implements CommCall::when_known(), for the files that define operations.
#pragma once

#include <utility>

#include "collective/comm_call.h"
#include "collective/shm/operation_queue.h"
#include "message/revocation.h"
#include "profile/collectives.h"

namespace starling::collective {

template <class Choose>
Task CommCall::later(QueueTurn given, Task making, CommCall call, Choose choose) {
    QueueTurn turn = std::move(given);
    co_await turn;
    co_await making;
    const Task task = choose(call);
    // Leave the queue of callers now, so that this operation begins before that of the next call.
    turn.abandon();
    co_return co_await task;
}

template <class Choose>
Task CommCall::when_known(Choose choose) {
    if (!stage.is_known(comm_)) [[unlikely]] {
        if (comm_.collective.revoked()) return Task::completed(message::why_revoked());
        QueueTurn turn(stage.callers());
        Task making = stage.make(comm_, exchange);
        if (!blocking_) {
            view = View::all(exchange);
            return later(std::move(turn), std::move(making), *this, choose);
        }
        run_in_turn(std::move(turn), std::move(making));
        if (profile::watching) profile::expect_choice();  // discards choices of the stage's creation, which are not this call's
    }
    view = View::all(exchange);
    // Use the stage only for an operation that is alone on it. Among simultaneous operations the parts within a host would run one after
    // the other and delay the operations as a whole, which costs more than messages do.
    view.blocking = blocking_;
    view.stage = (blocking_ || alone_) && stage.node_of_host() ? &stage : nullptr;
    view.steering = blocking_ ? exchange.steering() : nullptr;
    if (view.steering) [[unlikely]]
        view.steering->begin();
    return choose(*this);
}

}  // namespace starling::collective
