// Turns: what uses a node stage beside the program runs one after the other, in the order in which it was called, which
// is the same in all members of a communicator.
#pragma once

#include <coroutine>
#include <list>
#include <utility>

#include "progress/ready.h"

namespace starling::collective {

class Turn;

/// Those who have come, the first of whom has the turn.
class Turns {
  public:
    Turns() = default;
    Turns(const Turns&) = delete;
    bool none() const { return places_.empty(); }

  private:
    friend Turn;
    std::list<std::coroutine_handle<>> places_;  ///< who waits for its turn there; null: nobody yet
};

/// One place: taken when this is made, given up when it goes. `co_await turn` until it has come. May be moved while nobody
/// awaits it.
class Turn {
  public:
    /// None is needed: it has come.
    Turn() = default;
    explicit Turn(Turns& turns) : turns_(&turns), place_(turns.places_.insert(turns.places_.end(), nullptr)) {}
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)), place_(other.place_) {}
    Turn& operator=(Turn&&) = delete;
    ~Turn() { give_up(); }

    void give_up() {
        if (!turns_) return;
        auto& places = std::exchange(turns_, nullptr)->places_;
        const bool had_turn = place_ == places.begin();
        places.erase(place_);
        if (had_turn && !places.empty() && places.front()) progress::schedule(places.front());
    }

    bool await_ready() const { return !turns_ || place_ == turns_->places_.begin(); }
    void await_suspend(std::coroutine_handle<> waiter) { *place_ = waiter; }
    void await_resume() const {}

  private:
    Turns* turns_ = nullptr;
    std::list<std::coroutine_handle<>>::iterator place_;
};

}  // namespace starling::collective
