#include "progress/engine.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <iterator>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/delay.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/process.h"
#include "base/state.h"
#include "link/peer.h"
#include "link/transports.h"
#include "progress/blocking_wait.h"
#include "progress/core_sharing.h"
#include "progress/coroutine_queue.h"
#include "progress/cpu_pressure.h"

namespace starling::progress {

namespace {

using Poller = bool (*)();
STARLING_STATE Poller pollers[8] = {};
STARLING_STATE int poller_count = 0;
/// Every so many polls look everywhere, however much comes on rings.
constexpr uint32_t kBusyPolls = 8;
/// A wait that always finds something, and not what it waits for, looks after the dead as often.
constexpr uint32_t kBusyWaits = 64;
STARLING_STATE uint32_t busy_polls = 0;
STARLING_STATE bool polling = false;  ///< a poll is on the stack; packets must not be taken while one is being delivered
/// The progress thread sleeps when so many polls in a row have found nothing; that for other hosts sooner, and at once where its core
/// is wanted.
constexpr int kQuietPolls = 200, kQuietPollsForHosts = 50;
/// How long it takes what it has heard of the cores for true, ns.
constexpr uint64_t kShortOfCoresNs = 1'000'000;
/// A loop of tests that find nothing yields once in so many, as a wait does.
constexpr uint32_t kTestsPerYield = 32;

/// Also when a poll ends by std::bad_alloc.
struct Polling {
    Polling() { polling = true; }
    ~Polling() { polling = false; }
};

/// What the library's thread is there for.
enum class Serves : uint8_t { nobody, program, other_hosts };
STARLING_STATE Serves thread_serves = Serves::nobody;
STARLING_STATE uint32_t rings_awaited = 0;  ///< calls of await_ring() without their await_no_ring()
STARLING_STATE pthread_t thread;
STARLING_STATE std::atomic<bool> stopping{false};

/// How many threads wait, as peers see it too.
STARLING_STATE shm::Presence before_start{};
STARLING_STATE shm::Presence* presence = &before_start;
bool anyone_waits() { return presence->waiting.load(std::memory_order_relaxed) != 0; }
void set_waiting(uint32_t threads) {
    presence->waiting.store(threads, std::memory_order_relaxed);
    counters.waiting = threads;
}

shm::Region own_region() {
    const link::Process& me = link::self();
    return shm::Region(me.job->segment().region(me.rank));
}
job::Doorbell& own_doorbell() { return own_region().doorbell(); }

// The progress thread sleeps on the same doorbell. It is armed (sleeping = 1) only while no thread of the
// application waits inside the library: those that do poll by themselves, and a peer then pays for no wake. The one that serves other
// hosts is armed while a neighbour's ring is awaited.
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

/// A thread of the program inside a wait, also when that ends by std::bad_alloc.
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
            hand_over_lock();
        }
        // While the application polls by itself, peers need not ring.
        const bool armed = !anyone_waits();
        const uint32_t rings = armed ? announce_sleep(Sleeper::progress_thread) : own_doorbell().rings.load();
        // stop() rings after it has said so: either we see that here, or the ring.
        if (!armed && !stopping.load())
            sleep_until_rung(rings, longest_sleep_aside(), Sleeper::aside);
        else if (!poll() && !stopping.load())
            sleep_until_rung(rings, longest_sleep(), Sleeper::progress_thread);
        look_at_liveness();
    }
    return nullptr;
}

bool poll_paths() {
    if (polling) return false;
    delay_at("before a poll");
    const Polling now;
    bool any = link::poll_rings();
    // Who waits for what came on a ring should not wait for a look at everything else, too.
    if (!any || ++busy_polls % kBusyPolls == 0) any |= link::poll_but_rings(any);
    for (int i = 0; i < poller_count; ++i) any |= pollers[i]();
    return any;
}

// While a thread of the program waits, it looks at the sockets itself. Whatever else these bring is left for the program's next call,
// which runs what it makes ready.
void* serve(void*) {
    ask_for_short_slices();
    bool short_of_cores = false;
    for (uint64_t now = 0, next_look = 0; !stopping.load();) {
        Lock lock;
        if (now >= next_look) {
            short_of_cores = cores_are_short();
            next_look = now + kShortOfCoresNs;
        }
        const int most = short_of_cores ? 1 : kQuietPollsForHosts;
        for (int quiet = 0; quiet < most && !anyone_waits() && !stopping.load();) {
            const bool any = poll_paths();
            if (any) wake_own_threads();
            quiet = any ? 0 : quiet + 1;
            hand_over_lock();
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
        look_at_liveness_now_and_then(now);
    }
    return nullptr;
}

/// The program's signals are for its own threads.
bool start_thread(void* (*run)(void*)) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const bool started = pthread_create(&thread, nullptr, run, nullptr) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace

void start() {
    set_doorbell(own_doorbell(), config().wait != Wait::poll);
    set_account(own_region().account());
    presence = &own_region().presence();
    take_place();
    if (config().wait != Wait::thread) return;
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

void add_poller(bool (*poller)()) {
    if (std::find(pollers, pollers + poller_count, poller) != pollers + poller_count) return;
    if (poller_count == static_cast<int>(std::size(pollers))) panic("more pollers than progress/engine has places");
    pollers[poller_count++] = poller;
}

bool poll() {
    bool any = poll_paths();
    any |= run_ready();
    if (any && threads_at_once()) wake_own_threads();
    return any;
}

void test() {
    // Across calls: a loop of tests idles as a wait does, short of blocking.
    STARLING_STATE static uint32_t empty = 0;
    if (poll()) {
        empty = 0;
        return;
    }
    if (threads_at_once()) hand_over_lock();
    if (++empty % kTestsPerYield != 0) return;
    yield_core(true);
    tell_test(now_ns());
}

void notify() { wake_own_threads(); }

void wait_until(bool (*condition)(void*), void* argument, const WaitSite& site) {
    if (condition(argument)) return;
    {
        const Waiter waiter;
        Idle idle(site, argument);  // gone, and its announcement with it, before the progress thread is armed
        for (uint32_t busy = 0; !condition(argument);) {
            if (!poll()) {
                idle.step();
                continue;
            }
            idle.reset();
            if (++busy % kBusyWaits == 0 && link::deaths_are_news()) [[unlikely]]
                look_at_liveness();
            // What came may be for a thread that needs the lock to take it, and come again until it has.
            if (threads_at_once() && !condition(argument)) hand_over_lock();
        }
    }
    if (!anyone_waits()) arm();
}

}  // namespace starling::progress
