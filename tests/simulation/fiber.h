// A stack of its own for each simulated process, and the way on to it and off it again. All run on one thread, one at a time.
#pragma once

#include <cstddef>

namespace starling::simulation {

class Fiber {
  public:
    /// `run(argument)` must not return: it leaves for the last time.
    Fiber(void (*run)(void*), void* argument);
    ~Fiber();
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// Runs it until it leaves.
    void enter();
    /// From inside: back to who entered.
    void leave();

  private:
    static void begin(Fiber* self);

    void (*const run_)(void*);
    void* const argument_;
    std::byte* memory_;
    void* inside_;             ///< stack pointer while it does not run
    void* outside_ = nullptr;  ///< of who entered
    void* fake_inside_ = nullptr;
    const void* outer_bottom_ = nullptr;
    size_t outer_bytes_ = 0;
};

}  // namespace starling::simulation
