// Memory that is kept back for calls in which others wait for this process. Who has none left in the middle of such a call could
// not even say so, and they would wait for ever.
#pragma once

#include <cstddef>

namespace starling {

/// While one lives, `new` gets of what is kept back what the system refuses. That is enough to take the call to its end, where all
/// members hear of it (collective/agreement.h). If it is not, and std::bad_alloc leaves the scope, the process has to end. May be nested. Needs
/// the library's lock.
class KeptMemory {
  public:
    KeptMemory();
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    /// Keeps back what is not there, as far as the system has it; so does every scope.
    static void fill();
    /// Whether something was taken of it since, or the system had not enough.
    static bool is_short();
    /// Whether this is inside of such a scope.
    static bool is_open();
    /// Whether an exception has left such a scope since the last one began.
    static bool was_left();
    /// Ends the process with a sentence on `calling` (base/current_function.h): memory ran out where others wait for it.
    [[noreturn, gnu::cold]] static void end();

  private:
    const int exceptions_;
};

/// So many zeros from calloc, as `new` would get them; throws std::bad_alloc.
void* allocate_zeros(std::size_t count, std::size_t bytes);

}  // namespace starling
