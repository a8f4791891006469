#include "progress/blocking_wait.h"

#include <immintrin.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/current_function.h"
#include "base/delay.h"
#include "base/linux_calls.h"
#include "base/live.h"
#include "base/lock.h"
#include "base/state.h"
#include "link/address_lookup.h"
#include "link/peer.h"
#include "link/transports.h"
#include "profile/call_site.h"
#include "profile/record.h"
#include "progress/core_sharing.h"
#include "progress/cpu_pressure.h"
#include "progress/engine.h"

namespace starling::progress {

namespace {

constexpr uint32_t kPollsAlone = 800;  ///< polls before the first check of the core: 40 µs, longer than most partners need
constexpr uint32_t kLooksPerPoll = 4;  ///< checks of only the rings between two polls of all paths
/// Polls before the first check if each poll is a system call. They take about as long as kPollsAlone polls of memory.
constexpr uint32_t kPollsOfSockets = 100;
constexpr uint64_t kLivenessNs = 20'000'000;
constexpr uint64_t kLongestSleepNs = 100'000'000;
/// Longest sleep while packets wait for room: a receiver that makes room does not ring.
constexpr uint64_t kRetryNs = 200'000;
/// Longest sleep while a process manager owes a reply, because the reply's arrival does not ring the doorbell.
constexpr uint64_t kAnswersNs = 1'000'000;
/// Longest sleep if the awaited event may occur without a ring of the doorbell.
constexpr uint64_t kUnrungNs = 1'000'000;
/// Longest sleep of a library thread that leaves the sockets to the application, before it checks whether an application thread still
/// waits.
constexpr uint64_t kAsideNs = 1'000'000;

STARLING_STATE job::Doorbell* doorbell = nullptr;
STARLING_STATE bool may_block = true;
/// Socket that wakes the thread that sleeps on the sockets, if there are peers on other hosts. Any other thread sleeps on the futex.
STARLING_STATE int wake_socket = -1;
STARLING_STATE bool sleeping_on_sockets = false;
/// Whether data on a socket, and not a ring, has ended the last sleep. The check for dead processes then runs only every 20 ms.
STARLING_STATE bool woken_by_data = false;
/// Number of application threads that sleep in a wait.
STARLING_STATE uint32_t asleep = 0;
STARLING_STATE CoreWatch core;
STARLING_STATE uint64_t next_liveness = 0;

/// Returns how peers must ring: bits of Doorbell::sleeping.
uint32_t wake_bits() {
    if (link::wait_descriptor() < 0) return job::kOnFutex;
    if (wake_socket < 0 && (wake_socket = job::open_wake_socket(*doorbell)) < 0) return job::kOnFutex;
    return threads_at_once() ? job::kOnFutex | job::kOnSocket : job::kOnSocket;
}

timespec time_of(uint64_t ns) { return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)}; }

/// Whether the kernel cannot wait for two words at once (Linux before 5.16, or a system call filter).
STARLING_STATE bool one_word_at_most = false;

futex_waitv word_to_sleep_on(const std::atomic<uint32_t>& word, uint32_t value) {
    return {value, reinterpret_cast<uint64_t>(&word), FUTEX_32, 0};
}

/// Returns whether to sleep on the job's failure count in addition to the doorbell. In a job that survives failures, application threads do
/// so: one call of the launcher then wakes all of them on the host.
bool should_sleep_on_two_words(Sleeper sleeper) {
    return sleeper == Sleeper::application && link::self().job->segment().header().recovers && !one_word_at_most;
}

/// Sleeps on the doorbell and the job's failure count. Returns true if the doorbell was rung, or a process has died.
bool sleep_on_two_words(uint32_t rings, const timespec& until) {
    link::Job& job = *link::self().job;
    futex_waitv words[] = {word_to_sleep_on(doorbell->rings, rings),
                           word_to_sleep_on(job.segment().header().failures, job.failures_counted())};
    step_out();
    const long woken = syscall(SYS_futex_waitv, words, 2, 0, &until, CLOCK_MONOTONIC);
    const int error = woken < 0 ? errno : 0;
    step_in();
    if (error != 0 && error != EAGAIN && error != ETIMEDOUT && error != EINTR) one_word_at_most = true;
    return woken >= 0;
}

/// Sleeps on the doorbell. Returns true if it was rung.
bool sleep_on_futex(uint32_t rings, uint64_t limit_ns, Sleeper sleeper) {
    const uint32_t who = sleeper == Sleeper::application ? FUTEX_BITSET_MATCH_ANY : job::kLibraryThreads;
    const timespec until = time_of(now_ns() + limit_ns);
    if (should_sleep_on_two_words(sleeper)) return sleep_on_two_words(rings, until);
    step_out();
    const long woken = syscall(SYS_futex, &doorbell->rings, FUTEX_WAIT_BITSET, rings, &until, nullptr, who);
    step_in();
    return woken == 0;
}

/// Sleeps on the sockets. Returns true if the doorbell was rung or a socket has data.
bool sleep_on_sockets(uint64_t limit_ns) {
    const uint64_t now = now_ns(), deadline = link::next_deadline();
    const timespec limit = time_of(deadline <= now ? 0 : std::min(limit_ns, deadline - now));
    pollfd sockets[] = {{wake_socket, POLLIN, 0}, {link::wait_descriptor(), POLLIN, 0}};
    if (!link::arm()) return true;
    sleeping_on_sockets = true;
    step_out();
    const int ready = ppoll(sockets, 2, &limit, nullptr);
    step_in();
    sleeping_on_sockets = false;
    link::disarm();
    if (sockets[0].revents) job::drain_wake_socket(wake_socket);
    if (sockets[1].revents) link::woken();
    woken_by_data = sockets[1].revents && !sockets[0].revents;
    return ready > 0;
}

/// Pauses between two polls; a packet on a ring ends the pause at once. If only other hosts can send, the pause is minimal, because only a
/// poll finds their packets.
void pause_between_polls() {
    _mm_pause();
    if (core.crowded() || (!link::has_rings() && link::wait_descriptor() >= 0)) return;
    for (uint32_t i = 1; i < kLooksPerPoll && !link::rings_hold_something(); ++i) _mm_pause();
}

/// Yields the core, without holding the lock. Returns when the yield ended, ns.
uint64_t yield_now() {
    ++counters.yields;
    step_out();
    sched_yield();
    step_in();
    return now_ns();
}

Waiting::CoreObservation look() {
    const uint64_t now = now_ns();
    const uint32_t cpu = own_core();
    const Company company = find_company(cpu, core.is_on(cpu) && core.is_sure_of_foreign_load(now));
    // Other threads of this process may be on this core too; they have no entry in the table of cores (job/places.h).
    return {now, company.neighbour || program_threads_at_once(), cpu, company.contested};
}

}  // namespace

bool core_is_crowded() { return core.crowded(); }

void set_doorbell(job::Doorbell& own, bool blocking) {
    doorbell = &own;
    may_block = blocking;
    core.begin(now_ns());
}

void wake_own_threads() {
    if (asleep > 0) job::ring(*doorbell);
}

uint32_t announce_sleep(Sleeper sleeper) {
    const uint32_t rings = doorbell->rings.load(std::memory_order_acquire);
    const uint32_t in_wait = sleeper == Sleeper::application ? job::kInWait : 0;
    doorbell->sleeping.store(wake_bits() | in_wait, std::memory_order_seq_cst);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return rings;
}

void withdraw_sleep() {
    if (asleep == 0) doorbell->sleeping.store(0, std::memory_order_relaxed);
}

uint64_t sleep_until_rung(uint32_t rings, uint64_t limit_ns, Sleeper sleeper) {
    if (link::deaths_are_news()) [[unlikely]] {
        withdraw_sleep();
        return now_ns();
    }
    delay_at("between the announcement of a sleep and the sleep");
    const bool application = sleeper == Sleeper::application;
    const uint64_t before = now_ns();
    ++counters.sleeps;
    if (application) counters.sleeping = ++asleep;
    // With several threads, this process may be computing in another one, and does not count as asleep.
    if (application && !program_threads_at_once()) mark_self_asleep();
    if (sleeper == Sleeper::server) wake_bits();  // creates the wake socket, by which stop() wakes this thread
    const bool on_sockets = sleeper != Sleeper::aside && wake_socket >= 0 && !sleeping_on_sockets;
    if (on_sockets ? sleep_on_sockets(limit_ns) : sleep_on_futex(rings, limit_ns, sleeper)) ++counters.wakes_by_ring;
    if (application) mark_self_awake();
    const uint64_t after = now_ns();
    if (application) {
        counters.sleeping = --asleep;
        counters.slept += after - before;
    }
    // This thread slept on the sockets; another one must do so now.
    if (on_sockets) wake_own_threads();
    withdraw_sleep();
    return after;
}

bool yield_core(bool whoever) {
    const Waiting::CoreObservation seen = look();
    uint64_t now = seen.now;
    core.see(seen.cpu, seen.neighbour, now);
    if (seen.contested) core.note_foreign_load(now);
    const bool yields = seen.neighbour && (whoever || !may_block || !core.contested(now));
    if (yields) {
        const uint64_t began = now;
        now = yield_now();
        core.yielded(now - began, now);
    }
    check_liveness_periodically(now);
    return yields;
}

void check_liveness() {
    profile::send_report();
    if (link::check_liveness() && threads_at_once()) wake_own_threads();
}

void check_liveness_periodically(uint64_t now) {
    if (now <= next_liveness && !link::deaths_are_news()) return;
    next_liveness = now + kLivenessNs;
    check_liveness();
}

uint64_t longest_sleep_aside() { return wake_socket >= 0 ? kAsideNs : kLongestSleepNs; }

bool aside_is_too_long() { return wake_socket < 0 && longest_sleep() < kLongestSleepNs; }

uint64_t longest_sleep() {
    if (link::waits_for_local_room()) return kRetryNs;
    return link::must_poll_for_answers() ? kAnswersNs : kLongestSleepNs;
}

Idle::Idle(const WaitSite& site, const void* argument)
    : waiting_(core, site.expected == Expected::later), site_(site), argument_(argument) {}

void Idle::withdraw() {
    if (waiting_.announced()) withdraw_sleep();
}

void Idle::count_until(uint64_t now) {
    if (began_ == 0) began_ = counted_;
    counters.waited += now - counted_;
    if (now > counted_ && config().profile) [[unlikely]]
        count_cause(now - counted_);
    counters.last_waited = counted_ = now;
}

void Idle::publish_if_long(uint64_t now) {
    if (now - began_ < kTellAfterNs) return;
    published_ = true;
    publish_wait(this, site_, argument_, began_, now);
}

// The cause and the call site are determined once per wait. A wait for several operations is attributed to the first one that is missing.
void Idle::count_cause(uint64_t ns) {
    if (cause_ == kNoCause) cause_ = static_cast<uint8_t>(cause_of(site_, argument_));
    const bool has_place = profile::add_wait(static_cast<profile::Cause>(cause_), ns) || called_from_;
    if (!has_place) return;
    if (!called_from_) called_from_ = profile::call_site();
    profile::place_waits(called_from_, calling);
}

// Returns how long to sleep, ns. An event without a ring is found only by a poll, so sleeps for such events are short. If other threads
// want the core, they last an eighth of the time waited so far, because the polls of hundreds of processes would fill the core.
uint64_t Idle::time_to_sleep(uint64_t now) const {
    if (site_.expected != Expected::unrung) return longest_sleep();
    if (!core.crowded() && !core.suspects_neighbour(now)) return std::min(kUnrungNs, longest_sleep());
    const uint64_t waited = began_ == 0 ? 0 : now - began_;
    return std::min(std::max(kUnrungNs, waited / 8), longest_sleep());
}

void Idle::check_core() {
    Waiting::CoreObservation seen = look();
    // Check for a shortage of cores only without a neighbour: a neighbour gets the core by a yield.
    if (may_block && !seen.neighbour && waiting_.should_check_cores(seen.now)) seen.short_of_cores = cores_are_short();
    const Waiting::Act act =
        waiting_.next(seen, {may_block, static_cast<uint64_t>(live(config().spin_us)) * 1000, link::wait_descriptor() >= 0});
    if (waiting_.since() == seen.now) counted_ = seen.now;
    count_until(seen.now);
    publish_if_long(seen.now);
    switch (act) {
        case Waiting::Act::spin:
            check_liveness_periodically(seen.now);
            return pause_between_polls();
        case Waiting::Act::yield: {
            const uint64_t ended = yield_now();
            waiting_.yielded(seen.now, ended);
            count_until(ended);
            publish_if_long(ended);
            return check_liveness_periodically(ended);
        }
        case Waiting::Act::move: {
            const bool moved = move_to_emptier_core();
            if (moved) ++counters.moves;
            return waiting_.moved(moved, now_ns());
        }
        case Waiting::Act::announce:
            rings_ = announce_sleep(Sleeper::application);
            return;
        case Waiting::Act::sleep: {
            const uint64_t ended = sleep_until_rung(rings_, time_to_sleep(seen.now), Sleeper::application);
            waiting_.slept(ended);
            count_until(ended);  // the event that ended the sleep may end the wait too, so publish nothing before the next poll
            return std::exchange(woken_by_data, false) ? check_liveness_periodically(ended) : check_liveness();
        }
    }
}

void Idle::step() {
    // Do not release the lock between announcement and sleep: a thread that completes the operation in between would see no sleeper to
    // wake.
    if (threads_at_once() && !waiting_.announced()) yield_lock();
    const bool dear = link::wait_descriptor() >= 0;
    if (waiting_.is_time_to_check(dear ? kPollsOfSockets : kPollsAlone, dear))
        check_core();
    else
        pause_between_polls();
}

}  // namespace starling::progress
