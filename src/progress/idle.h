// What a wait does when a poll found nothing: spin, then yield, then block.
#pragma once

#include <cstdint>

#include "boot/doorbell.h"
#include "progress/teller.h"

namespace starling::progress {

/// How long to do what. Judged by the load that is seen: a sched_yield that comes back late has let
/// someone else run, so others want this core, whichever job they belong to.
class Idle {
  public:
    /// What is waited for, told when it has lasted for a while. If it is expected later, this spins for as long as waking
    /// somebody takes, and sleeps without yielding.
    Idle(const WaitSite& site, const void* argument) : site_(site), argument_(argument) {}
    ~Idle() {
        withdraw();
        if (told_) [[unlikely]]
            end_told_wait(this);
    }
    /// Something happened: start over.
    void reset() {
        withdraw();
        polls_ = 0;
        since_ = 0;
    }
    /// One step of doing nothing. Blocking takes two: the first announces it, so that the caller looks once more
    /// for what it waits for, whatever that is, before the second sleeps.
    void step();

  private:
    void yield();
    void withdraw();
    void announce();
    bool later() const { return site_.expected == Expected::later; }
    void count_until(uint64_t now);
    uint32_t polls_ = 0;
    uint64_t began_ = 0;  ///< ns, when this wait first stopped spinning; 0 before
    uint64_t since_ = 0;  ///< ns, when yielding began; 0 before
    uint64_t counted_ = 0;  ///< ns, up to when counters.waited has this wait
    bool announced_ = false;
    bool told_ = false;
    uint32_t rings_ = 0;  ///< of the doorbell, when it was announced
    const WaitSite& site_;
    const void* argument_;
};

/// Lets another process have the core if one wants it, and notes the load that this showed. Gives up the lock.
/// Returns when it began, ns.
uint64_t yield_core();

/// Whether other processes have lately wanted the core that this one waits on.
bool core_is_crowded();

/// The doorbell that block() sleeps on, and whether blocking is allowed at all (mode poll: no).
void set_doorbell(boot::Doorbell& doorbell, bool may_block);

/// Who blocks: a thread of the application inside a wait, the progress thread in its place, or the progress thread while
/// the application waits and looks at everything by itself.
enum class Sleeper { application, progress_thread, aside };

/// Has peers ring from now on and gives the count of rings so far.
uint32_t announce_sleep();
/// Sleeps until the doorbell has rung more often than `rings` or, with peers on other hosts, the sockets have something,
/// for at most `limit_ns`; gives up the lock meanwhile.
/// Returns when it ended, ns.
uint64_t sleep_until_rung(uint32_t rings, uint64_t limit_ns, Sleeper sleeper);
/// Peers need not ring, unless another thread still sleeps.
void withdraw_sleep();

/// How long a sleep may last before it must look again, ns.
uint64_t longest_sleep();
/// The same for Sleeper::aside.
uint64_t longest_sleep_aside();

/// Looks whether other jobs live; what that completes wakes the threads that wait for it.
void look_at_liveness();

/// Wakes the application's threads that block: one of them may be waiting for what was just done.
void wake_own_threads();

}  // namespace starling::progress
