#include "progress/idle.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "link/locate.h"
#include "link/peer.h"
#include "link/remote.h"
#include "progress/engine.h"
#include "progress/lock.h"

namespace starling::progress {

namespace {

constexpr uint32_t kPollsAlone = 800;      ///< about 40 µs: longer than most partners need
constexpr uint32_t kLooksPerPoll = 4;      ///< at the rings alone, while nothing is there
constexpr uint32_t kPollsOfSockets = 100;  ///< the same time, where each poll asks the kernel
constexpr uint32_t kPollsCrowded = 20;     ///< others wait for this core: the partner may be among them
constexpr uint32_t kPatience = 3;          ///< times as many where a process must be woken first: it answers in 100 µs, or is busy
constexpr uint64_t kLateYieldNs = 1000;    ///< an undisturbed sched_yield takes a third of this
constexpr int kCrowdedAfter = 2;           ///< late yields in a row of eight
constexpr uint64_t kLivenessNs = 20'000'000;
constexpr uint64_t kLongestSleepNs = 100'000'000;
/// With something to send that found no room: a receiver that makes room does not ring.
constexpr uint64_t kRetryNs = 200'000;
/// With a question to a process manager that does not ring when it is answered.
constexpr uint64_t kAnswersNs = 1'000'000;
/// Of a progress thread that leaves the sockets to the application, until it looks whether that still waits.
constexpr uint64_t kAsideNs = 1'000'000;

boot::Doorbell* doorbell = nullptr;
bool may_block = true;
/// With peers on other hosts one thread sleeps on the sockets, any other on the futex; this socket wakes the former.
int wake_socket = -1;
bool sleeping_on_sockets = false;
uint32_t lateness = 0;  ///< history of yields, a bit each, 1 = late
bool is_crowded = false;
uint64_t next_liveness = 0;
uint64_t last_yield = 0;

/// How peers must ring: bits of Doorbell::sleeping.
uint32_t ways_to_wake() {
    if (link::network_descriptor() < 0) return boot::kOnFutex;
    if (wake_socket < 0 && (wake_socket = boot::open_wake_socket(*doorbell)) < 0) return boot::kOnFutex;
    return threads_at_once() ? boot::kOnFutex | boot::kOnSocket : boot::kOnSocket;
}

timespec time_of(uint64_t ns) {
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

/// True if it was rung.
bool sleep_on_futex(uint32_t rings, uint64_t limit_ns) {
    const timespec limit = time_of(limit_ns);
    step_out();
    const long woken = syscall(SYS_futex, &doorbell->rings, FUTEX_WAIT, rings, &limit, nullptr, 0);
    step_in();
    return woken == 0;
}

/// True if it was rung or a socket has something.
bool sleep_on_sockets(uint64_t limit_ns) {
    const uint64_t now = now_ns(), deadline = link::network_deadline();
    const timespec limit = time_of(deadline <= now ? 0 : std::min(limit_ns, deadline - now));
    pollfd sockets[] = {{wake_socket, POLLIN, 0}, {link::network_descriptor(), POLLIN, 0}};
    sleeping_on_sockets = true;
    step_out();
    const int ready = ppoll(sockets, 2, &limit, nullptr);
    step_in();
    sleeping_on_sockets = false;
    if (sockets[0].revents) boot::drain_wake_socket(wake_socket);
    return ready > 0;
}

/// Between two polls: what comes on a ring ends it at once.
void pause_between_polls() {
    _mm_pause();
    if (is_crowded) return;
    for (uint32_t i = 1; i < kLooksPerPoll && !link::rings_hold_something(); ++i) _mm_pause();
}

}  // namespace

bool core_is_crowded() { return is_crowded; }

void set_doorbell(boot::Doorbell& own, bool blocking) {
    doorbell = &own;
    may_block = blocking;
}

void wake_own_threads() {
    if (counters.sleeping > 0) boot::ring(*doorbell);
}

uint32_t announce_sleep() {
    const uint32_t rings = doorbell->rings.load(std::memory_order_acquire);
    doorbell->sleeping.store(ways_to_wake(), std::memory_order_seq_cst);
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
    const bool on_sockets = sleeper != Sleeper::aside && wake_socket >= 0 && !sleeping_on_sockets;
    if (on_sockets ? sleep_on_sockets(limit_ns) : sleep_on_futex(rings, limit_ns)) ++counters.wakes_by_ring;
    const uint64_t after = now_ns();
    if (application) {
        --counters.sleeping;
        counters.slept += after - before;
    }
    // Another thread has to watch the sockets now.
    if (on_sockets) wake_own_threads();
    withdraw_sleep();
    return after;
}

uint64_t yield_core() {
    const uint64_t before = now_ns();
    ++counters.yields;
    step_out();
    sched_yield();
    step_in();
    const uint64_t after = now_ns();
    lateness = lateness << 1 | (after - before > kLateYieldNs ? 1 : 0);
    is_crowded = __builtin_popcount(lateness & 0xff) >= kCrowdedAfter;
    last_yield = after;
    if (after > next_liveness) {
        next_liveness = after + kLivenessNs;
        look_at_liveness();
    }
    return before;
}

void look_at_liveness() {
    if (link::check_liveness() && threads_at_once()) wake_own_threads();
}

uint64_t longest_sleep_aside() { return wake_socket >= 0 ? kAsideNs : kLongestSleepNs; }

uint64_t longest_sleep() {
    if (link::anything_waits_for_room_here()) return kRetryNs;
    return link::must_look_for_answers() ? kAnswersNs : kLongestSleepNs;
}

void Idle::withdraw() {
    if (!announced_) return;
    announced_ = false;
    withdraw_sleep();
}

void Idle::count_until(uint64_t now) {
    if (began_ == 0) began_ = counted_;
    counters.waited += now - counted_;
    counters.last_waited = counted_ = now;
    if (now - began_ < kTellAfterNs) return;
    told_ = true;
    tell_wait(this, site_, argument_, began_, now);
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
    if (may_block && last_yield - since_ > static_cast<uint64_t>(config().spin_us) * 1000) announce();
}

void Idle::announce() {
    if (later()) counted_ = now_ns();
    rings_ = announce_sleep();
    announced_ = true;
}

void Idle::step() {
    // Not between announcing and sleeping: who completes our operation then would see nobody to wake.
    if (threads_at_once() && !announced_) hand_over_lock();
    const uint32_t alone = link::network_descriptor() < 0 ? kPollsAlone : kPollsOfSockets;
    if (later() && may_block) {
        if (announced_) return yield();
        if (++polls_ >= (is_crowded ? kPollsCrowded : alone * kPatience)) return announce();
        return pause_between_polls();
    }
    if (++polls_ < (is_crowded ? kPollsCrowded : alone)) return pause_between_polls();
    // Yield at every few polls only, so that an undisturbed wait still polls most of the time.
    if (announced_ || is_crowded || polls_ % 16 == 0)
        yield();
    else
        pause_between_polls();
}

}  // namespace starling::progress
