// Idle: one step of a wait after a poll that found nothing. It spins, yields to neighbours, or sleeps, as progress/backoff_policy.h
// decides.
#pragma once

#include <cstdint>

#include "job/doorbell.h"
#include "progress/backoff_policy.h"
#include "progress/wait_report.h"

namespace starling::progress {

/// Carries out the decisions of the backoff policy for one wait.
class Idle {
  public:
    /// `site` describes the awaited event, which is published when the wait has lasted for a while. With Expected::later the wait spins for
    /// as long as waking a process takes, then sleeps without yielding.
    Idle(const WaitSite& site, const void* argument);
    ~Idle() {
        withdraw();
        if (published_) [[unlikely]]
            withdraw_wait(this);
    }
    /// Restarts the policy after a poll that found something.
    void reset() {
        withdraw();
        waiting_.reset();
    }
    /// Performs one idle step. A sleep takes two steps: the first announces it to peers, so that the caller polls once more before the
    /// second one sleeps.
    void step();

  private:
    void check_core();
    uint64_t time_to_sleep(uint64_t now) const;
    void withdraw();
    void count_until(uint64_t now);
    void publish_if_long(uint64_t now);
    void count_cause(uint64_t ns);
    static constexpr uint8_t kNoCause = 0xff;
    Waiting waiting_;
    uint64_t began_ = 0;    ///< time at which this wait first stopped spinning, ns; 0 before
    uint64_t counted_ = 0;  ///< time up to which counters.waited includes this wait, ns
    bool published_ = false;
    uint8_t cause_ = kNoCause;           ///< profile::Cause of this wait, once known
    uint32_t rings_ = 0;                 ///< doorbell's ring count when the sleep was announced
    const void* called_from_ = nullptr;  ///< call site in the program; null until known
    const WaitSite& site_;
    const void* argument_;
};

/// Yields this core if a neighbour is on it, and records how long the yield took. Does not yield if unknown threads would take the core,
/// unless `whoever` is set (for callers that cannot wait in another way). Releases the lock meanwhile. Returns whether it yielded.
bool yield_core(bool whoever = false);

/// Returns whether another known process has recently wanted the core on which this process waits.
bool core_is_crowded();

/// Sets the doorbell on which waits sleep, and whether they may sleep at all (not in mode poll).
void set_doorbell(job::Doorbell& doorbell, bool may_block);

/// The kind of thread that sleeps. application: an application thread inside a wait. progress_thread: the thread of STARLING_WAIT=thread.
/// aside: a library thread while an application thread waits and polls. server: the thread that serves other hosts.
enum class Sleeper { application, progress_thread, aside, server };

/// Makes peers ring the doorbell from now on; returns the current ring count. While an application thread sleeps in a wait, a ring concerns
/// only that thread, and the library's threads stay asleep.
uint32_t announce_sleep(Sleeper sleeper);
/// Sleeps until the doorbell has rung more often than `rings`, for at most `limit_ns`. With peers on other hosts, data on the sockets ends
/// the sleep too. Releases the lock meanwhile. Does not sleep if a death is unprocessed; the caller must call check_liveness() then.
/// Returns when the sleep ended, ns.
uint64_t sleep_until_rung(uint32_t rings, uint64_t limit_ns, Sleeper sleeper);
/// Withdraws announce_sleep(), so that peers need not ring, unless another thread still sleeps.
void withdraw_sleep();

/// Returns how long a sleep may last before the next poll, ns.
uint64_t longest_sleep();
/// Returns how long a sleep of Sleeper::aside may last, ns.
uint64_t longest_sleep_aside();
/// Returns whether a library thread asleep as Sleeper::aside must be woken when no application thread waits any more. True if there are
/// events that do not ring, for which it must poll.
bool aside_is_too_long();

/// Checks whether other jobs are alive. Requests to dead ones complete with an error and wake their threads.
void check_liveness();
/// Calls check_liveness() if a death was reported, or the last check was 20 ms ago or more.
void check_liveness_periodically(uint64_t now);

/// Wakes the sleeping application threads of this process, because the calling thread may have completed the wait of one of them.
void wake_own_threads();

}  // namespace starling::progress
