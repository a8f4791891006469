#include "progress/flag_wait.h"

#include "base/state.h"
#include "progress/blocking_wait.h"
#include "progress/coroutine_queue.h"
#include "progress/engine.h"

namespace starling::progress {

namespace {

using Waits = List<FlagWait, &FlagWait::hook>;

// The awaited conditions. Allocated at first use, so that most programs do not pay for them at startup.
STARLING_STATE Waits* waits = nullptr;

void add(FlagWait& wait) {
    if (!waits) {
        waits = new Waits;
        add_poller(poll_flags);
    }
    waits->push_back(&wait);
}

}  // namespace

bool poll_flags() {
    bool any = false;
    for (FlagWait *wait = waits->front(), *next; wait; wait = next) {
        next = waits->next(wait);
        if (!wait->ready(wait->argument)) continue;
        any = true;
        if (!wait->waiter) continue;
        Waits::remove(wait);
        schedule(wait->waiter);
    }
    return any;
}

void wait_for_flags(bool (*ready)(void*), void* argument, const WaitSite& site) {
    FlagWait wait{{}, ready, argument};
    add(wait);
    wait_until(ready, argument, site);
    Waits::remove(&wait);
}

void await_flags(FlagWait& wait) { add(wait); }

bool flags_are_awaited() { return waits && !waits->empty(); }

bool wait_for_flags_first(const Request& request) {
    const auto is_done = [&] {
        if (poll_flags()) run_ready();
        return *static_cast<const volatile bool*>(&request.done);
    };
    for (int i = core_is_crowded() ? kFlagSpins - 1 : 0; i < kFlagSpins; ++i) {
        if (is_done()) return true;
        __builtin_ia32_pause();
    }
    for (int i = 0; i < kCrowdedYields && core_is_crowded(); ++i) {
        if (!yield_core()) break;
        if (is_done()) return true;
        poll();
    }
    return is_done();
}

}  // namespace starling::progress
