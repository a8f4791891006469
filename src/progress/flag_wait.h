// Waiting for words in shared memory that other processes write, as the node stage of collectives does. Who
// writes such a word rings the doorbells of those who may sleep on it.
#pragma once

#include <coroutine>

#include "base/list.h"
#include "progress/engine.h"

namespace starling::progress {

/// Looks at words before anything else is looked at: most partners are here within a fraction of a microsecond, or not for long; one
/// that shares this core will not come before we let go.
inline constexpr int kFlagSpins = 30;
/// Yields before the engine takes over, which may sleep: on a crowded core every look but the first after a yield is a waste.
inline constexpr int kCrowdedYields = 30;

/// One thing waited for. `ready` is asked at every poll, so it must be cheap, and must not call into the
/// library.
struct FlagWait {
    ListHook hook;
    bool (*ready)(void*);
    void* argument;
    std::coroutine_handle<> waiter = nullptr;  ///< scheduled when it is ready, and waits no longer; null: a thread waits
};

/// True if something waited for is there; the engine's poller for flags.
bool poll_flags();

/// Blocks until `ready(argument)`, in the job's waiting mode; other communication goes on. Needs the
/// library's lock.
void wait_for_flags(bool (*ready)(void*), void* argument, const WaitSite& site = kSomewhere);

template <class F>
void wait_for_flags(F& ready, const WaitSite& site = kSomewhere) {
    wait_for_flags([](void* f) { return static_cast<bool>((*static_cast<F*>(f))()); }, &ready, site);
}

/// Schedules `wait.waiter` when `wait.ready(wait.argument)`. Not ready now; stays where it is until then, or is unlinked.
void await_flags(FlagWait& wait);

}  // namespace starling::progress
