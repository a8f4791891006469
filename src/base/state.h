// The process's Runtime object: everything of the library that changes and lives as long as the process. Each file declares
// its own part where it needs it, private to it, and the linker lays the parts side by side. So the code uses plain
// addresses, with no pointer to load first, and yet there is one object that can be copied out and in: who runs several ranks
// in one process and one thread (a simulation) exchanges the contents when it switches from one to the next.
//
// For that nothing else of the library may change: no variable without the mark, no local static with a guard, no
// constructor that runs at load. tests/rooms/state_test.py holds it. What a thread has to itself (base/current_function.h, base/error.cpp)
// is not part of it, nor is what lies on the heap: the state points there, so it comes and goes with the state.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

/// Stands before the definition of a variable with static storage that changes: at namespace scope or in a function, but
/// not in a template, whose variables GCC puts elsewhere.
///     STARLING_STATE uint32_t asleep = 0;
/// The type of a pointer to a function needs a name (GCC 12 takes the declaration for a function's).
/// The type is made at compile time, and its destructor does nothing: at namespace scope base/no_destroy.h, in a function Lazy.
#define STARLING_STATE [[gnu::section("starling_state")]] constinit

namespace starling {

/// All of it. What it held before anything ran is what a new process begins with; what it held at some moment may be put
/// back at any later one, in the same process, since nothing in it moves.
std::span<std::byte> runtime_state();

/// A part of the state that can't be made at compile time: it is made when it is first asked for, and never destroyed.
/// Thread-safe: of two threads that make it at a time one's is kept.
template <class T>
class Lazy {
  public:
    T& get() {
        return get([] { return new T; });
    }
    /// The same, made by make(), which returns what `delete` may delete.
    template <class Make>
    T& get(Make make) {
        T* const made = made_.load(std::memory_order_acquire);
        return made ? *made : keep(make());
    }

  private:
    [[gnu::noinline, gnu::cold]] T& keep(T* mine) {
        T* other = nullptr;
        if (made_.compare_exchange_strong(other, mine, std::memory_order_acq_rel, std::memory_order_acquire)) return *mine;
        delete mine;
        return *other;
    }

    std::atomic<T*> made_ = nullptr;
};

}  // namespace starling
