#include "progress/flags.h"

#include "base/state.h"
#include "progress/engine.h"

namespace starling::progress {

namespace {

using Waits = List<FlagWait, &FlagWait::hook>;

// Made at first use: most programs' start need not pay for it.
STARLING_STATE Waits* waits = nullptr;

}  // namespace

bool poll_flags() {
    for (FlagWait* wait = waits->front(); wait; wait = waits->next(wait))
        if (wait->ready(wait->argument)) return true;
    return false;
}

void wait_for_flags(bool (*ready)(void*), void* argument, const WaitSite& site) {
    if (!waits) {
        waits = new Waits;
        add_poller(poll_flags);
    }
    FlagWait wait{{}, ready, argument};
    waits->push_back(&wait);
    wait_until(ready, argument, site);
    Waits::remove(&wait);
}

}  // namespace starling::progress
