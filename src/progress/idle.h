// What a wait does when a poll found nothing: spin, then yield, then block.
#pragma once

#include <cstdint>

#include "boot/doorbell.h"

namespace starling::progress {

/// How long to do what. Judged by the load that is seen: a sched_yield that comes back late has let
/// someone else run, so others want this core, whichever job they belong to.
class Idle {
  public:
    /// Something happened: start over.
    void reset() {
        polls_ = 0;
        since_ = 0;
    }
    /// One step of doing nothing.
    void step();

  private:
    void yield();
    uint32_t polls_ = 0;
    uint64_t since_ = 0;  ///< ns, when yielding began; 0 before
};

/// Lets another process have the core if one wants it, and notes the load that this showed. Gives up the lock.
void yield_core();

/// The doorbell that block() sleeps on, and whether blocking is allowed at all (mode poll: no).
void set_doorbell(boot::Doorbell& doorbell, bool may_block);

/// Who blocks: a thread of the application inside a wait, or the progress thread, which peers need not ring
/// (`quiet`) while the application polls by itself.
enum class Sleeper { application, progress_thread, progress_thread_quiet };

/// Blocks until the doorbell rings, for at most `limit_ns`; gives the lock up meanwhile. Looks once more for work after
/// announcing it. Returns false if that found some.
bool block(uint64_t limit_ns, Sleeper sleeper);

/// Wakes the application's threads that block: one of them may be waiting for what was just done.
void wake_own_threads();

}  // namespace starling::progress
