#include "progress/idle.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "link/peer.h"
#include "progress/engine.h"
#include "progress/lock.h"

namespace starling::progress {

namespace {

constexpr uint32_t kPollsAlone = 2000;     ///< about 40 µs: longer than most partners need
constexpr uint32_t kPollsCrowded = 20;     ///< others wait for this core: the partner may be among them
constexpr uint64_t kLateYieldNs = 1000;    ///< an undisturbed sched_yield takes a third of this
constexpr int kCrowdedAfter = 2;           ///< late yields in a row of eight
constexpr uint64_t kLivenessNs = 20'000'000;
constexpr uint64_t kLongestSleepNs = 100'000'000;
/// With something to send that found no room: a receiver that makes room does not ring.
constexpr uint64_t kRetryNs = 200'000;

boot::Doorbell* doorbell = nullptr;
bool may_block = true;
uint32_t lateness = 0;  ///< history of yields, a bit each, 1 = late
uint64_t next_liveness = 0;
uint64_t last_yield = 0;

bool crowded() { return __builtin_popcount(lateness & 0xff) >= kCrowdedAfter; }

}  // namespace

bool core_is_crowded() { return crowded(); }

void set_doorbell(boot::Doorbell& own, bool blocking) {
    doorbell = &own;
    may_block = blocking;
}

void wake_own_threads() {
    if (counters.sleeping == 0) return;
    doorbell->rings.fetch_add(1);
    syscall(SYS_futex, &doorbell->rings, FUTEX_WAKE, 1 << 30, nullptr, nullptr, 0);
}

uint32_t announce_sleep() {
    const uint32_t rings = doorbell->rings.load(std::memory_order_acquire);
    doorbell->sleeping.store(1, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return rings;
}

void withdraw_sleep() {
    if (counters.sleeping == 0) doorbell->sleeping.store(0, std::memory_order_relaxed);
}

uint64_t sleep_until_rung(uint32_t rings, uint64_t limit_ns, Sleeper sleeper) {
    const bool application = sleeper == Sleeper::application;
    const uint64_t before = now_ns();
    ++counters.sleeps;
    if (application) ++counters.sleeping;
    const timespec limit{static_cast<time_t>(limit_ns / 1'000'000'000),
                         static_cast<long>(limit_ns % 1'000'000'000)};
    const int held = multi_threaded ? release_lock_fully() : 0;
    const long woken = syscall(SYS_futex, &doorbell->rings, FUTEX_WAIT, rings, &limit, nullptr, 0);
    if (multi_threaded) reacquire_lock(held);
    const uint64_t after = now_ns();
    if (woken == 0) ++counters.wakes_by_ring;
    if (application) {
        --counters.sleeping;
        counters.slept += after - before;
    }
    withdraw_sleep();
    return after;
}

uint64_t yield_core() {
    const uint64_t before = now_ns();
    ++counters.yields;
    const int held = multi_threaded ? release_lock_fully() : 0;
    sched_yield();
    if (multi_threaded) reacquire_lock(held);
    const uint64_t after = now_ns();
    lateness = lateness << 1 | (after - before > kLateYieldNs ? 1 : 0);
    last_yield = after;
    if (after > next_liveness) {
        next_liveness = after + kLivenessNs;
        look_at_liveness();
    }
    return before;
}

void look_at_liveness() {
    if (link::check_liveness() && multi_threaded) wake_own_threads();
}

uint64_t longest_sleep() { return link::anything_pending() ? kRetryNs : kLongestSleepNs; }

void Idle::withdraw() {
    if (!announced_) return;
    announced_ = false;
    withdraw_sleep();
}

void Idle::count_until(uint64_t now) {
    counters.waited += now - counted_;
    counted_ = now;
}

void Idle::yield() {
    if (announced_) {
        count_until(sleep_until_rung(rings_, longest_sleep(), Sleeper::application));
        announced_ = false;
        look_at_liveness();
        return;
    }
    const uint64_t began = yield_core();
    if (since_ == 0) since_ = counted_ = began;
    count_until(last_yield);
    if (may_block && last_yield - since_ > static_cast<uint64_t>(config().spin_us) * 1000) {
        rings_ = announce_sleep();
        announced_ = true;
    }
}

void Idle::step() {
    // Not between announcing and sleeping: who completes our operation then would see nobody to wake.
    if (multi_threaded && !announced_) hand_over_lock();
    if (++polls_ < (crowded() ? kPollsCrowded : kPollsAlone)) {
        _mm_pause();
        return;
    }
    // Yield at every few polls only, so that an undisturbed wait still polls most of the time.
    if (announced_ || crowded() || polls_ % 16 == 0)
        yield();
    else
        _mm_pause();
}

}  // namespace starling::progress
