// A libc mutex for short and rare critical sections, and a condition variable. A thread that holds it neither waits nor runs code of the program.
#pragma once

#include <pthread.h>

namespace starling {

class Mutex {
  public:
    constexpr Mutex() = default;
    Mutex(const Mutex&) = delete;
    Mutex& operator=(const Mutex&) = delete;

  private:
    friend class MutexGuard;
    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
};

/// Holds a mutex for a scope. Scopes of one mutex must not be nested.
class [[nodiscard]] MutexGuard {
  public:
    explicit MutexGuard(Mutex& mutex) : mutex_(mutex.mutex_) { pthread_mutex_lock(&mutex_); }
    ~MutexGuard() { pthread_mutex_unlock(&mutex_); }
    MutexGuard(const MutexGuard&) = delete;
    MutexGuard& operator=(const MutexGuard&) = delete;

  private:
    friend class Condition;
    pthread_mutex_t& mutex_;
};

/// A condition variable, on which a thread of the library sleeps while it has no work. A wait may end without a signal.
class Condition {
  public:
    constexpr Condition() = default;
    Condition(const Condition&) = delete;
    Condition& operator=(const Condition&) = delete;

    /// Releases the mutex while it sleeps.
    void wait(MutexGuard& guard) { pthread_cond_wait(&condition_, &guard.mutex_); }
    void signal() { pthread_cond_signal(&condition_); }

  private:
    pthread_cond_t condition_ = PTHREAD_COND_INITIALIZER;
};

}  // namespace starling
