#include "progress/engine.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/state.h"
#include "base/thread.h"
#include "job/life_lock.h"
#include "link/host_memory.h"
#include "link/peer.h"
#include "link/transports.h"
#include "progress/blocking_wait.h"
#include "progress/core_sharing.h"
#include "progress/coroutine_queue.h"
#include "progress/cpu_pressure.h"

namespace starling::progress {

namespace {

using Poller = bool (*)();
/// Time slice that a rank of a job that survives deaths requests. Shorter than the default of 1.4 ms and more, because a busy core would let
/// it learn of a death late; longer than the launcher's, which must run first.
constexpr uint32_t kSurvivorSliceUs = 500;

STARLING_STATE Poller pollers[12] = {};
STARLING_STATE int poller_count = 0;
using Stopper = void (*)();
STARLING_STATE Stopper stoppers[2] = {};
STARLING_STATE int stopper_count = 0;
/// Every kBusyPolls-th poll polls all transports, even if the rings always deliver packets.
constexpr uint32_t kBusyPolls = 8;
/// Number of polls after which a wait checks for deaths if its polls always find events, but never the awaited one.
constexpr uint32_t kBusyWaits = 64;
STARLING_STATE uint32_t busy_polls = 0;
STARLING_STATE bool polling = false;  ///< a poll is on the stack, so no other packet may be delivered meanwhile
/// Number of consecutive polls without events after which the progress thread, or the thread for other hosts, sleeps. The latter sleeps
/// after one if cores are short.
constexpr int kQuietPolls = 200, kQuietPollsForHosts = 50;
/// How long the thread for other hosts relies on its last check for a shortage of cores, ns.
constexpr uint64_t kShortOfCoresNs = 1'000'000;
/// Number of test calls without events per yield, so that a loop of tests yields as a wait does.
constexpr uint32_t kTestsPerYield = 32;

/// Marks that a poll is in progress, until its destructor runs, even if the poll throws std::bad_alloc.
struct PollingScope {
    PollingScope() { polling = true; }
    ~PollingScope() { polling = false; }
};

/// The purpose of the library's thread: to poll for the program, or for the RMA accesses of other hosts.
enum class Serves : uint8_t { nobody, program, other_hosts };
STARLING_STATE Serves thread_serves = Serves::nobody;
STARLING_STATE uint32_t rings_awaited = 0;  ///< calls of await_ring() without a matching await_no_ring()
STARLING_STATE pthread_t thread;
STARLING_STATE std::atomic<bool> stopping{false};

/// The record of the number of waiting threads. Peers read it too; before start() it is private.
STARLING_STATE link::Presence before_start{};
STARLING_STATE link::Presence* presence = &before_start;
bool anyone_waits() { return presence->waiting.load(std::memory_order_relaxed) != 0; }
void set_waiting(uint32_t threads) {
    presence->waiting.store(threads, std::memory_order_relaxed);
    counters.waiting = threads;
}

link::SegmentRegion own_region() {
    const link::Process& me = link::self();
    return link::SegmentRegion(me.job->segment().region(me.rank));
}
job::Doorbell& own_doorbell() { return own_region().doorbell(); }

// The progress thread sleeps on the doorbell of the application threads. The doorbell is armed (sleeping = 1) only while no application
// thread waits inside the library: waiting threads poll by themselves, and a peer then need not wake any. For the thread that serves other
// hosts, the doorbell is armed while a neighbour's ring is awaited.
bool is_rung() { return thread_serves == Serves::program || (thread_serves == Serves::other_hosts && rings_awaited != 0); }

void arm() {
    if (!is_rung()) return;
    announce_sleep(Sleeper::progress_thread);
    poll();
    if (aside_is_too_long()) job::ring(own_doorbell());
}

void disarm() {
    if (is_rung()) own_doorbell().sleeping.store(0, std::memory_order_relaxed);
}

/// Counts an application thread as waiting until its destructor runs, even if the wait throws std::bad_alloc.
struct Waiter {
    Waiter() {
        const uint32_t others = presence->waiting.load(std::memory_order_relaxed);
        set_waiting(others + 1);
        if (others == 0) disarm();
    }
    ~Waiter() { set_waiting(presence->waiting.load(std::memory_order_relaxed) - 1); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
};

void* run_thread(void*) {
    while (!stopping.load()) {
        Lock lock;
        for (int quiet = 0; quiet < kQuietPolls && !anyone_waits() && !stopping.load();) {
            quiet = poll() ? 0 : quiet + 1;
            yield_lock();
        }
        // While the application polls by itself, peers need not ring.
        const bool armed = !anyone_waits();
        const uint32_t rings = armed ? announce_sleep(Sleeper::progress_thread) : own_doorbell().rings.load();
        // stop() sets `stopping` before it rings, so this thread sees one of the two.
        if (!armed && !stopping.load())
            sleep_until_rung(rings, longest_sleep_aside(), Sleeper::aside);
        else if (!poll() && !stopping.load())
            sleep_until_rung(rings, longest_sleep(), Sleeper::progress_thread);
        check_liveness();
    }
    return nullptr;
}

bool poll_paths() {
    if (polling) return false;
    delay_at("before a poll");
    const PollingScope now;
    bool any = link::poll_rings();
    // A wait for a packet on a ring should not be delayed by polls of all other transports.
    if (!any || ++busy_polls % kBusyPolls == 0) any |= link::poll_but_rings(any);
    for (int i = 0; i < poller_count; ++i) any |= pollers[i]();
    return any;
}

// The thread that serves other hosts. While an application thread waits, that thread polls the sockets itself. This thread runs no
// coroutines; those that become ready run in the program's next call.
void* serve(void*) {
    request_short_slices();
    bool short_of_cores = false;
    for (uint64_t now = 0, next_check = 0; !stopping.load();) {
        Lock lock;
        if (now >= next_check) {
            short_of_cores = cores_are_short();
            next_check = now + kShortOfCoresNs;
        }
        const int most = short_of_cores ? 1 : kQuietPollsForHosts;
        for (int quiet = 0; quiet < most && !anyone_waits() && !stopping.load();) {
            const bool any = poll_paths();
            if (any) wake_own_threads();
            quiet = any ? 0 : quiet + 1;
            yield_lock();
        }
        if (stopping.load()) break;
        const bool armed = rings_awaited != 0 && !anyone_waits();
        const uint32_t rings = armed ? announce_sleep(Sleeper::server) : own_doorbell().rings.load();
        if (armed && poll_paths()) {
            withdraw_sleep();
            wake_own_threads();
            continue;
        }
        now = anyone_waits() ? sleep_until_rung(rings, longest_sleep_aside(), Sleeper::aside)
                             : sleep_until_rung(rings, longest_sleep(), Sleeper::server);
        check_liveness_periodically(now);
    }
    return nullptr;
}

/// Adds a function to a table, unless it is there already.
template <class Function, size_t kMost>
void add(Function (&table)[kMost], int& count, Function function) {
    if (std::find(table, table + count, function) != table + count) return;
    if (count == static_cast<int>(kMost)) panic("more functions are registered than a table in progress/engine.cpp has entries");
    table[count++] = function;
}

bool start_thread(void* (*run)(void*)) { return starling::start_thread(thread, run, nullptr) == 0; }

}  // namespace

void start() {
    set_doorbell(own_doorbell(), config().wait != WaitPolicy::poll);
    set_account(own_region().account());
    presence = &own_region().presence();
    claim_entry();
    if (const link::Process me = link::self(); me.job->segment().header().recovers) {
        request_short_slices(kSurvivorSliceUs);
        job::acquire_life_lock(me.job->segment(), me.rank);
    }
    if (config().wait != WaitPolicy::thread) return;
    if (start_thread(run_thread)) thread_serves = Serves::program;
}

void serve_other_hosts() {
    if (thread_serves != Serves::nobody || !config().rma_thread || link::wait_descriptor() < 0) return;
    step_out();
    allow_threads(Threads::served);
    step_in();
    if (thread_serves == Serves::nobody && start_thread(serve)) thread_serves = Serves::other_hosts;
}

void stop() {
    leave_place();
    for (int i = 0; i < stopper_count; ++i) stoppers[i]();
    if (thread_serves == Serves::nobody) return;
    stopping.store(true);
    announce_sleep(Sleeper::progress_thread);
    step_out();
    job::ring(own_doorbell());
    pthread_join(thread, nullptr);
    step_in();
    stopping.store(false);
    thread_serves = Serves::nobody;
    own_doorbell().sleeping.store(0);
}

void await_ring() {
    ++rings_awaited;
    if (thread_serves == Serves::other_hosts && !anyone_waits()) announce_sleep(Sleeper::server);
}

void await_no_ring() { --rings_awaited; }

void add_poller(bool (*poller)()) { add(pollers, poller_count, poller); }

void add_stopper(void (*stopper)()) { add(stoppers, stopper_count, stopper); }

bool poll() {
    bool any = poll_paths();
    any |= run_ready();
    if (any && threads_at_once()) wake_own_threads();
    return any;
}

void test() {
    // Number of calls in a row without events. It is kept across calls, because a loop of tests idles as a wait does, but does not sleep.
    STARLING_STATE static uint32_t empty = 0;
    if (poll()) {
        empty = 0;
        return;
    }
    if (threads_at_once()) yield_lock();
    if (++empty % kTestsPerYield != 0) return;
    yield_core(true);
    publish_test(now_ns());
}

void notify() { wake_own_threads(); }

void ring_self() { job::ring(own_doorbell()); }

void wait_until(bool (*condition)(void*), void* argument, const WaitSite& site) {
    if (condition(argument)) return;
    {
        const Waiter waiter;
        // In this scope, so that its destructor withdraws the announced sleep before arm() is called.
        Idle idle(site, argument);
        for (uint32_t busy = 0; !condition(argument);) {
            if (!poll()) {
                idle.step();
                continue;
            }
            idle.reset();
            if (++busy % kBusyWaits == 0 && link::deaths_are_news()) [[unlikely]]
                check_liveness();
            if (!threads_at_once()) continue;
            // A condition that has held once is not evaluated again: it may have taken what it found.
            if (condition(argument)) break;
            // The event may concern another thread, which needs the lock to handle it; polls report the event again until then.
            yield_lock();
        }
    }
    if (!anyone_waits()) arm();
}

}  // namespace starling::progress
