// The process's Runtime object: all mutable data of the library that live as long as the process. Each file declares its own part, private
// to it, and the linker places the parts side by side. So the code uses plain addresses, without loading a pointer first, and the whole can
// still be copied. A simulation runs several ranks in one process and one thread. It exchanges the contents when it switches between ranks.
//
// This requires that nothing else in the library is mutable: no variable without the mark, no local static with a guard, no constructor
// that runs at load. tests/rooms/state_test.py enforces it. Thread-local data (base/current_function.h, base/error.cpp) are not part of the
// object. Neither is the heap, but since all pointers into it are in the object, a rank's heap objects are exchanged with it.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>

/// Makes a mutable variable with static storage part of the Runtime object: precedes its definition at namespace scope or in a function. It
/// does not work for a template's variables, which GCC puts into sections of their own.
///     STARLING_STATE uint32_t asleep = 0;
/// A pointer to a function needs a named type (GCC 12 takes the declaration for a function's). The variable must be constructible
/// at compile time, and its destructor must do nothing: use base/no_destroy.h at namespace scope and Lazy in a function.
#define STARLING_STATE [[gnu::section("starling_state")]] constinit

namespace starling {

/// Returns all of the state. Its contents before any code ran are those of a new process. A copy of its contents may be restored at any
/// later moment in the same process, since nothing in it moves.
std::span<std::byte> runtime_state();

/// A part of the state that cannot be constructed at compile time. It is created at the first get() and never destroyed. Thread-safe: if
/// two threads create it at the same time, one object is kept.
template <class T>
class Lazy {
  public:
    T& get() {
        return get([] { return new T; });
    }
    /// Returns the object; creates it by make(), which returns a pointer that `delete` accepts.
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
