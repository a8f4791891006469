// The library's lock. Entry points hold it for a scope. No code of the program runs under it: callbacks of the program are called within
// OutsideLibrary, and waits release the lock while they idle. So it needs no nesting. The cost of a call depends on what threads may do
// (docs/design.md, "Locks").
#pragma once

#include <atomic>
#include <cstdint>

#include "base/current_function.h"

namespace starling {

/// How the program's threads, and the library's own, may be inside the library. Ordered: each value allows more than the one before.
enum class Threads : uint8_t {
    one,      ///< MPI_THREAD_SINGLE and no MPI session: calls do not even record that they are inside
    in_turn,  ///< never two threads at once, but that may change; so a call records that it is inside, by two plain stores
    served,   ///< one thread of the library, and the program's threads one at a time: every call takes the lock
    at_once,  ///< any number of threads: every call takes the lock
};
extern std::atomic<Threads> threads_are;

/// Returns whether another thread may wait for the lock.
inline bool threads_at_once() { return threads_are.load(std::memory_order_relaxed) >= Threads::served; }
/// Returns whether another thread that waits for the lock may be one of the program's, or one that executes callbacks of the program.
inline bool program_threads_at_once() { return threads_are.load(std::memory_order_relaxed) == Threads::at_once; }

/// Raises `threads_are` to `wish`; it is never lowered. If a thread entered without the lock and is still inside, waits until it has left,
/// idles or runs a callback of the program. Not to be called while inside, nor by two threads at once.
void allow_threads(Threads wish);

void enter_slowly();
void leave_slowly();

/// Returns whether this thread is inside. Always false under Threads::one, where no caller depends on it.
bool is_inside();
/// Leaves the library, for a system call that blocks or for another thread's turn, and enters it again. Between the two calls other threads
/// may be inside, and may raise `threads_are`.
inline void step_out() {
    if (threads_are.load(std::memory_order_relaxed) != Threads::one) leave_slowly();
}
inline void step_in() {
    if (threads_are.load(std::memory_order_relaxed) != Threads::one) enter_slowly();
}

/// Lets waiting threads take the lock in turn: called between two polls of a wait. A thread that entered without the lock, before
/// `threads_are` required it, holds the lock on return.
void yield_lock();

/// A scope in which this thread is inside the library: it holds the lock, if `threads_are` requires that.
class Lock {
  public:
    Lock() {
        if (threads_are.load(std::memory_order_relaxed) != Threads::one) [[unlikely]]
            enter_slowly();
    }
    // Loads `threads_are` again: the call itself may have raised it, or may have idled while another thread did.
    ~Lock() {
        if (threads_are.load(std::memory_order_relaxed) != Threads::one) [[unlikely]]
            leave_slowly();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
};

/// A scope in which this thread is outside the library and runs a callback of the program. May also be opened where no lock is held. The
/// caller must hold references to every object that it uses afterwards.
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
