// The progress engine: moves messages and waits. One per process; every wait of the library goes through it. All calls need the library's
// lock, which a wait releases while it idles in multi-threaded programs.
#pragma once

#include "progress/request.h"
#include "progress/wait_report.h"

namespace starling::progress {

/// Starts the engine with its doorbell and waiting mode (STARLING_WAIT). In mode `thread` it also starts the progress thread, with all
/// signals blocked; Threads::at_once must then be allowed. Call it after link::start(); it may be called again after stop().
void start();
/// Ends the library's threads. Call it when the library is no longer used: none of its code may run while the process exits.
void stop();

/// Adds a function that ends a thread of another room; stop() calls it, with the lock held. Has no effect if it was added before. At most 2
/// functions.
void add_stopper(void (*stopper)());

/// Starts a thread that serves the RMA accesses of other hosts while the program computes. The thread polls when the sockets have data and
/// no program thread waits. It runs no coroutines, and so no code of the program. Has no effect if STARLING_RMA_THREAD is off, no other
/// host can be reached, or there is a progress thread. Releases the lock meanwhile.
void serve_other_hosts();
/// Between await_ring() and await_no_ring(), which nest, a neighbour's ring also wakes the thread of serve_other_hosts(). The caller must
/// ask neighbours to ring before it calls await_ring(), and afterwards check for earlier events that did not ring.
void await_ring();
void await_no_ring();

/// Adds a function that poll() calls each time, unless it was added before; the function returns whether anything happened. At most 12
/// functions.
void add_poller(bool (*poller)());

/// Polls every path once and runs what became ready. Returns whether anything happened.
bool poll();

/// Polls for a test call of the program. If nothing happened, lets other threads and neighbours on this core run, for programs that test in
/// a loop.
void test();

/// Makes waiting threads check their conditions, because the application itself (and not a poll) has completed a request.
void notify();

/// Wakes this process if it sleeps in a wait or in a thread of the library, for an event that a poller will find. The one function here that
/// a thread may call without the lock.
void ring_self();

/// Wait site of a wait about which nothing is known but the calling MPI function.
inline constexpr WaitSite kSomewhere{};

/// Blocks until `condition(argument)` holds. The condition is evaluated after each poll, so it must be cheap, and not again once it has held.
/// `site` must stay alive until the return.
void wait_until(bool (*condition)(void*), void* argument, const WaitSite& site = kSomewhere);

template <class F>
void wait_until(F condition, const WaitSite& site = kSomewhere) {
    wait_until([](void* f) { return static_cast<bool>((*static_cast<F*>(f))()); }, &condition, site);
}

/// Returns whether a coroutine or a thread waits for words that other processes write (progress/flag_wait.h).
bool flags_are_awaited();
/// Waits for `request` by polling only the words that flags_are_awaited() reports, for as long as most such waits take. Returns whether it
/// is done.
bool wait_for_flags_first(const Request& request);

/// Blocks until `request` is done, in the job's waiting mode. The site's callback gets the request as argument.
inline void wait(Request& request, const WaitSite& site = kSomewhere) {
    if (request.done) return;
    if (flags_are_awaited() && wait_for_flags_first(request)) return;
    wait_until([](void* r) { return *static_cast<volatile bool*>(&static_cast<Request*>(r)->done); }, &request, site);
}

}  // namespace starling::progress
