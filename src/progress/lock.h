// The library's lock. Entry points take it; in programs with one thread, and no progress thread, it costs one
// predictable branch.
#pragma once

namespace starling::progress {

/// Set once in MPI_Init (thread level above serialized, or a progress thread), before other threads call.
extern bool multi_threaded;

void acquire_lock();
void release_lock();

/// Gives waiting threads the lock in turn: what a thread does between two polls of a wait.
void hand_over_lock();

/// Gives up the lock however deep the owner holds it, and takes it back. For blocking system calls.
int release_lock_fully();
void reacquire_lock(int depth);

/// Holds the lock for a scope. The same thread may nest it (callbacks that call MPI).
class Lock {
  public:
    Lock() : held_(multi_threaded) {
        if (held_) [[unlikely]]
            acquire_lock();
    }
    ~Lock() {
        if (held_) [[unlikely]]
            release_lock();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

  private:
    const bool held_;  ///< a call may be the one that makes the library multi-threaded
};

}  // namespace starling::progress
