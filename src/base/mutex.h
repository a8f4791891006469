// A libc mutex for short and rare critical sections. A thread that holds it neither waits nor runs code of the program.
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
    pthread_mutex_t& mutex_;
};

}  // namespace starling
