// Turns: what uses a node stage beside the program runs one after the other, in the order in which it was called, which
// is the same in all members of a communicator.
#pragma once

#include <coroutine>
#include <utility>

#include "base/list.h"
#include "progress/coroutine_queue.h"

namespace starling::collective {

class OperationQueue;

/// One place: taken when this is made, or later, and given up when it goes. `co_await turn` until it has come. May be moved
/// while nobody awaits it.
class Turn {
  public:
    /// None is needed: it has come.
    Turn() = default;
    explicit Turn(OperationQueue& turns) { take(turns); }
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), hook_(std::exchange(other.hook_, {})) {
        if (turns_) hook_.next->prev = hook_.prev->next = &hook_;
    }
    Turn& operator=(Turn&&) = delete;
    ~Turn() { give_up(); }

    void take(OperationQueue& turns);
    void give_up();

    bool await_ready() const;
    void await_suspend(std::coroutine_handle<> waiter) { waiter_ = waiter; }
    void await_resume() const {}

  private:
    friend OperationQueue;
    OperationQueue* turns_ = nullptr;
    ListHook hook_;
    std::coroutine_handle<> waiter_ = nullptr;  ///< null: nobody yet
};

/// Those who have come, the first of whom has the turn.
class OperationQueue {
  public:
    OperationQueue() = default;
    OperationQueue(const OperationQueue&) = delete;
    bool none() const { return places_.empty(); }

  private:
    friend Turn;
    List<Turn, &Turn::hook_> places_;
};

inline void Turn::take(OperationQueue& turns) {
    turns_ = &turns;
    turns.places_.push_back(this);
}

inline bool Turn::await_ready() const { return !turns_ || turns_->places_.front() == this; }

inline void Turn::give_up() {
    if (!turns_) return;
    auto& places = std::exchange(turns_, nullptr)->places_;
    const bool had_turn = places.front() == this;
    hook_.unlink();
    const Turn* next = had_turn ? places.front() : nullptr;
    if (next && next->waiter_) progress::schedule(next->waiter_);
}

}  // namespace starling::collective
