// Waits for words in shared memory that other processes write, as in the shared-memory stage of collectives. The writer of such a word
// rings the doorbells of the processes that may sleep on it.
#pragma once

#include <coroutine>

#include "base/list.h"
#include "progress/engine.h"

namespace starling::progress {

/// Polls of the awaited words before anything else is polled. Most partners arrive within a fraction of a microsecond, or much later. A
/// partner on this core cannot arrive before this process yields.
inline constexpr int kFlagSpins = 30;
/// Polls of the awaited words on a crowded core if all awaited partners are on other cores: 1 µs, as long as a yield that lets a neighbour run takes.
inline constexpr int kCrowdedFlagSpins = 60;
/// Yields of a wait before the engine takes over, which may sleep. On a crowded core only the first poll after each yield is useful.
inline constexpr int kCrowdedYields = 30;

/// One awaited condition. `ready` is evaluated at every poll, so it must be cheap, and must not call into the library.
struct FlagWait {
    ListHook hook;
    bool (*ready)(void*);
    void* argument;
    std::coroutine_handle<> waiter = nullptr;  ///< coroutine to schedule when `ready` holds; null: a thread waits
};

/// Returns whether any awaited condition holds. The engine calls it at every poll.
bool poll_flags();

/// Blocks until `ready(argument)` holds, in the job's waiting mode; other communication continues. Needs the library's lock.
void wait_for_flags(bool (*ready)(void*), void* argument, const WaitSite& site = kSomewhere);

template <class F>
void wait_for_flags(F& ready, const WaitSite& site = kSomewhere) {
    wait_for_flags([](void* f) { return static_cast<bool>((*static_cast<F*>(f))()); }, &ready, site);
}

/// Schedules `wait.waiter` when `wait.ready(wait.argument)` holds, which must not be true yet. Until then `wait` must stay at its address,
/// or be unlinked.
void await_flags(FlagWait& wait);

/// Suspends a task until `condition()` holds, which is evaluated as FlagWait::ready: `co_await FlagAwaiter(condition)`.
template <class Condition>
class FlagAwaiter {
  public:
    explicit FlagAwaiter(Condition condition) : condition_(condition) {}
    FlagAwaiter(const FlagAwaiter&) = delete;
    bool await_ready() const { return condition_(); }
    void await_suspend(std::coroutine_handle<> waiter) {
        wait_.waiter = waiter;
        await_flags(wait_);
    }
    void await_resume() const {}

  private:
    const Condition condition_;
    FlagWait wait_{{}, [](void* self) { return static_cast<const FlagAwaiter*>(self)->await_ready(); }, this};
};

}  // namespace starling::progress
