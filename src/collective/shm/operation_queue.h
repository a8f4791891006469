// The queue for a shared-memory stage: awaited operations run one after the other, in the order of the calls, which is the same on all
// members of a communicator.
#pragma once

#include <coroutine>
#include <utility>

#include "base/list.h"
#include "progress/coroutine_queue.h"

namespace starling::collective {

class OperationQueue;

/// One operation's position in the queue, taken on construction or with enqueue(), and left on destruction. `co_await turn` waits until it
/// is the first. May be moved while no coroutine awaits it.
class QueueTurn {
  public:
    /// Creates an empty turn, which never waits.
    QueueTurn() = default;
    explicit QueueTurn(OperationQueue& turns) { enqueue(turns); }
    QueueTurn(QueueTurn&& other) noexcept
        : turns_(std::exchange(other.turns_, nullptr)), hook_(std::exchange(other.hook_, {})) {
        if (turns_) hook_.next->prev = hook_.prev->next = &hook_;
    }
    QueueTurn& operator=(QueueTurn&&) = delete;
    ~QueueTurn() { abandon(); }

    void enqueue(OperationQueue& turns);
    void abandon();

    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
    void await_resume() const {}

  private:
    friend OperationQueue;
    OperationQueue* turns_ = nullptr;
    ListHook hook_;
    std::coroutine_handle<> waiter_ = nullptr;  ///< coroutine that awaits the turn; null: none
};

/// The queue of operations, in the order of their turns; the first one may use the stage.
class OperationQueue {
  public:
    OperationQueue() = default;
    OperationQueue(const OperationQueue&) = delete;
    bool none() const { return places_.empty(); }

  private:
    friend QueueTurn;
    List<QueueTurn, &QueueTurn::hook_> places_;
};

inline void QueueTurn::enqueue(OperationQueue& turns) {
    turns_ = &turns;
    turns.places_.push_back(this);
}

inline bool QueueTurn::await_ready() const { return !turns_ || turns_->places_.front() == this; }

inline void QueueTurn::abandon() {
    if (!turns_) return;
    auto& places = std::exchange(turns_, nullptr)->places_;
    const bool had_turn = places.front() == this;
    hook_.unlink();
    const QueueTurn* next = had_turn ? places.front() : nullptr;
    if (next && next->waiter_) progress::schedule(next->waiter_);
}

}  // namespace starling::collective
