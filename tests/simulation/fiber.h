// A separate stack for each thread of simulated processes, with switches to it and back. All fibers run on one real thread, one at a time.
#pragma once

#include <cstddef>

namespace starling::simulation {

/// Whether fibers may have separate thread-local variables. ThreadSanitizer keeps its record of the calls in such variables.
#ifdef __SANITIZE_THREAD__
inline constexpr bool kHasThreads = false;
#else
inline constexpr bool kHasThreads = true;
#endif

class Fiber {
  public:
    /// `run(argument)` must not return: it ends with a last leave(). The fiber finds the thread-local variables of the real thread, or those
    /// at another thread pointer (threads.cpp).
    Fiber(void (*run)(void*), void* argument, void* thread_pointer = nullptr);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs the fiber until it leaves.
    void enter();
    /// Called on the fiber: returns to the caller of enter().
    void leave();
    /// Called on the fiber: runs the other fiber in its place, until one of them leaves.
    void leave_to(Fiber& other);

  private:
    static void begin(Fiber* self);
    void arrive();

    void (*const run_)(void*);
    void* const argument_;
    void* const thread_pointer_;  ///< null: that of the real thread
    std::byte* memory_;
    void* inside_;             ///< stack pointer while the fiber does not run
    void* outside_ = nullptr;  ///< stack pointer of the caller of enter(), also if another fiber was entered
    void* fake_inside_ = nullptr;  ///< AddressSanitizer's copies of variables, while the fiber does not run
    bool announced_ = false;       ///< whether AddressSanitizer knows this stack as that of the thread at thread_pointer_
};

}  // namespace starling::simulation
