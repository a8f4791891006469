// What a wait does when a poll found nothing: it spins, yields to neighbours and blocks, as the rules of progress/backoff_policy.h
// say.
#pragma once

#include <cstdint>

#include "job/doorbell.h"
#include "progress/backoff_policy.h"
#include "progress/wait_report.h"

namespace starling::progress {

/// One wait: carries out what its rules decide.
class Idle {
  public:
    /// What is waited for, told when it has lasted for a while. If it is expected later, this spins for as long as waking
    /// somebody takes, and sleeps without yielding.
    Idle(const WaitSite& site, const void* argument);
    ~Idle() {
        withdraw();
        if (told_) [[unlikely]]
            end_told_wait(this);
    }
    /// Something happened: start over.
    void reset() {
        withdraw();
        waiting_.reset();
    }
    /// One step of doing nothing. Blocking takes two: the first announces it, so that the caller looks once more
    /// for what it waits for, whatever that is, before the second sleeps.
    void step();

  private:
    void look_around();
    uint64_t time_to_sleep(uint64_t now) const;
    void withdraw();
    void count_until(uint64_t now);
    void tell_if_long(uint64_t now);
    void count_cause(uint64_t ns);
    static constexpr uint8_t kNoCause = 0xff;
    Waiting waiting_;
    uint64_t began_ = 0;    ///< ns, when this wait first stopped spinning; 0 before
    uint64_t counted_ = 0;  ///< ns, up to when counters.waited has this wait
    bool told_ = false;
    uint8_t cause_ = kNoCause;           ///< profile::Cause, when it is known
    uint32_t rings_ = 0;                 ///< of the doorbell, when it was announced
    const void* called_from_ = nullptr;  ///< place in the program, when it is known
    const WaitSite& site_;
    const void* argument_;
};

/// Lets a neighbour have the core if one is there, and notes the load that this showed; not while strangers would take it,
/// unless `whoever`, for those that have no other way to wait. Gives up the lock. Whether it has yielded.
bool yield_core(bool whoever = false);

/// Whether a process that we know has lately wanted the core that this one waits on.
bool core_is_crowded();

/// The doorbell that block() sleeps on, and whether blocking is allowed at all (mode poll: no).
void set_doorbell(job::Doorbell& doorbell, bool may_block);

/// Who blocks: a thread of the application inside a wait, the progress thread in its place, a thread of the library's while
/// the application waits and looks at everything by itself, or the one that serves other hosts.
enum class Sleeper { application, progress_thread, aside, server };

/// Has peers ring from now on and gives the count of rings so far. While a thread of the application sleeps in a wait, a ring wakes those
/// of the library for nothing, and they stay asleep.
uint32_t announce_sleep(Sleeper sleeper);
/// Sleeps until the doorbell has rung more often than `rings` or, with peers on other hosts, the sockets have something,
/// for at most `limit_ns`; gives up the lock meanwhile. Does not sleep over a death that nobody has looked at: look_at_liveness() is
/// the caller's.
/// Returns when it ended, ns.
uint64_t sleep_until_rung(uint32_t rings, uint64_t limit_ns, Sleeper sleeper);
/// Peers need not ring, unless another thread still sleeps.
void withdraw_sleep();

/// How long a sleep may last before it must look again, ns.
uint64_t longest_sleep();
/// The same for Sleeper::aside.
uint64_t longest_sleep_aside();
/// Whether somebody who fell asleep as aside has to be woken when the application waits no more: there is something to look for that rings
/// nobody.
bool aside_is_too_long();

/// Looks whether other jobs live; what that completes wakes the threads that wait for it.
void look_at_liveness();
/// The same, if somebody is known to have died or it is 20 ms or more since the last time.
void look_at_liveness_now_and_then(uint64_t now);

/// Wakes the application's threads that block: one of them may be waiting for what was just done.
void wake_own_threads();

}  // namespace starling::progress
