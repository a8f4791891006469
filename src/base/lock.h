// The library's lock. Entry points hold it for a scope, and nothing that belongs to the program runs under it: functions
// of the program's are called within OutsideLibrary, and waits step out while they idle. So it needs no nesting. How much a call
// pays depends on what threads may do (docs/design.md, "Locks").
#pragma once

#include <atomic>
#include <cstdint>

#include "base/current_function.h"

namespace starling {

/// How the program's threads, and the library's own, may be inside the library.
enum class Threads : uint8_t {
    one,      ///< MPI_THREAD_SINGLE, and no session beside: calls are not even counted
    in_turn,  ///< never two at once, but that may change: a call says that it is inside, which costs two plain stores
    served,   ///< those of the program as before, and a thread of the library's beside: the lock is taken
    at_once,  ///< the lock is taken
};
extern std::atomic<Threads> threads_are;

/// Whether another thread may have to be given its turn.
inline bool threads_at_once() { return threads_are.load(std::memory_order_relaxed) >= Threads::served; }
/// Whether that may be one of the program's, or one that does whatever the program would.
inline bool program_threads_at_once() { return threads_are.load(std::memory_order_relaxed) == Threads::at_once; }

/// From now on threads may do as `wish` says; what was allowed before stays so. If a thread is inside that came without
/// the lock, waits until it has left, idles or runs a function of the program's. Not while inside; one thread at a time.
void allow_threads(Threads wish);

void enter_slowly();
void leave_slowly();

/// Whether this thread is inside. False under Threads::one, where nobody needs to know.
bool is_inside();
/// Steps out, for a system call that blocks or another's turn, and in again. Between them other threads may be inside, and
/// may have to be counted with from then on if they had not before.
inline void step_out() {
    if (threads_are.load(std::memory_order_relaxed) != Threads::one) leave_slowly();
}
inline void step_in() {
    if (threads_are.load(std::memory_order_relaxed) != Threads::one) enter_slowly();
}

/// Gives waiting threads the lock in turn: what a thread does between two polls of a wait. One that came in without the
/// lock, before threads were allowed in at once, has it from here on.
void hand_over_lock();

/// Inside the library for a scope.
class Lock {
  public:
    Lock() {
        if (threads_are.load(std::memory_order_relaxed) != Threads::one) [[unlikely]]
            enter_slowly();
    }
    // Looks anew: a call may be the one that lets other threads in, or have idled while another did.
    ~Lock() {
        if (threads_are.load(std::memory_order_relaxed) != Threads::one) [[unlikely]]
            leave_slowly();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

/// Outside the library for a scope, in which a function of the program's runs, from inside or from where no lock is needed.
/// What the caller goes on with must not go away meanwhile: it holds references.
class OutsideLibrary {
  public:
    OutsideLibrary() : was_inside_(is_inside()) {
        if (was_inside_) leave_slowly();
    }
    ~OutsideLibrary() {
        if (was_inside_) enter_slowly();
        calling = calling_;
    }
    OutsideLibrary(const OutsideLibrary&) = delete;
    OutsideLibrary& operator=(const OutsideLibrary&) = delete;

  private:
    const bool was_inside_;
    const char* const calling_ = calling;
};

}  // namespace starling
