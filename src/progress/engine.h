// The engine: moves messages and waits. One per process; every wait of the library goes through it. All calls
// need the library's lock, which a wait gives up while it idles in multi-threaded programs.
#pragma once

#include "progress/request.h"
#include "progress/wait_report.h"

namespace starling::progress {

/// Begins: own doorbell, waiting mode (STARLING_WAIT); in mode `thread` starts the progress thread, with all signals
/// blocked. After link::start(), and again after stop(); Threads::at_once must be allowed for that mode.
void start();
/// Ends the library's thread. When the library is no longer used; nothing of it may run while the process exits.
void stop();

/// From now on a thread answers while the program computes what processes on other hosts want of this one's memory: it polls when
/// the sockets have something and no thread of the program waits, and runs no coroutines, so nothing of the program's. Nothing
/// happens if STARLING_RMA_THREAD is off, no other host can be met or there is a progress thread. Gives up the lock meanwhile.
void serve_other_hosts();
/// From now on until await_no_ring(), called as often, that thread is rung by neighbours too. Neighbours are told so before; what they may
/// have done until then is looked at behind it.
void await_ring();
void await_no_ring();

/// Adds something that poll() asks each time, if it is not there yet; it returns whether anything happened. At most 8.
void add_poller(bool (*poller)());

/// Polls every path once and runs what became ready. Returns whether anything happened.
bool poll();

/// What a call that tests does: polls, and if nothing came lets other threads and neighbours on this core run, for programs
/// that test in a loop.
void test();

/// A request was completed by the application, not by a poll: threads that wait look again.
void notify();

/// Where there is no more to say than which function waits.
inline constexpr WaitSite kSomewhere{};

/// Blocks until `condition(argument)` holds; it is asked after each poll, so it must be cheap. `site` lasts as long.
void wait_until(bool (*condition)(void*), void* argument, const WaitSite& site = kSomewhere);

template <class F>
void wait_until(F condition, const WaitSite& site = kSomewhere) {
    wait_until([](void* f) { return static_cast<bool>((*static_cast<F*>(f))()); }, &condition, site);
}

/// Whether a coroutine or a thread waits for words that others write (progress/flag_wait.h).
bool flags_are_awaited();
/// Waits for `request` by looking at these alone, for as long as most take. True if it is done.
bool wait_for_flags_first(const Request& request);

/// Blocks until `request` is done, in the job's waiting mode. `site.tell` gets the request.
inline void wait(Request& request, const WaitSite& site = kSomewhere) {
    if (request.done) return;
    if (flags_are_awaited() && wait_for_flags_first(request)) return;
    wait_until([](void* r) { return *static_cast<volatile bool*>(&static_cast<Request*>(r)->done); }, &request, site);
}

}  // namespace starling::progress
