// Memory reserved for calls in which other processes wait for this one. A process that ran out of memory within such a call could not even
// report the error, and the others would wait forever.
#pragma once

#include <atomic>
#include <cstddef>

namespace starling {

namespace detail {
extern std::atomic<int> reserve_users;   ///< number of KeptMemory::Use objects
extern std::atomic<bool> reserve_short;  ///< whether a block of the reserve has been used since the last KeptMemory::fill()
}  // namespace detail

/// A scope within which `new` uses the reserve when the system refuses memory. The reserve suffices to reach the end of the call, where all
/// members learn of the error (collective/agreement.h). If it does not suffice and std::bad_alloc leaves the scope, the process has to end.
/// Scopes may be nested. Needs the library's lock.
class KeptMemory {
  public:
    KeptMemory();
    ~KeptMemory();
    KeptMemory(const KeptMemory&) = delete;
    KeptMemory& operator=(const KeptMemory&) = delete;

    /// Refills the reserve as far as the system provides memory. Every scope does this when it begins and when it ends.
    static void fill();
    /// Returns whether a block of the reserve is missing: it was used, or the system could not provide it.
    static bool is_short();
    /// Returns whether a KeptMemory scope is open.
    static bool is_open();
    /// Marks that std::bad_alloc has left a call for which others wait, so that out_of_memory() ends the process.
    static void mark_left();

    /// A part of an operation for which others wait: a call, or memory that the operation uses until its end, such as a coroutine frame.
    /// While one exists, `new` uses the reserve. Costs two plain writes, unlike a scope. The next refill() replaces used blocks.
    class Use {
      public:
        Use() { begin(); }
        ~Use() { end(); }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

        // Writers hold the library's lock. Other threads only read, so no atomic addition is needed.
        static void begin() { add(1); }
        static void end() { add(-1); }

      private:
        static void add(int more) {
            detail::reserve_users.store(detail::reserve_users.load(std::memory_order_relaxed) + more,
                                        std::memory_order_relaxed);
        }
    };
    /// Refills the reserve if a block of it has been used.
    static void refill() {
        if (detail::reserve_short.load(std::memory_order_relaxed)) [[unlikely]]
            fill();
    }
    /// Returns whether an exception has left a KeptMemory scope since the last one began.
    static bool was_left();
    /// Ends the process with an error text that names `calling` (base/current_function.h): out of memory in a call for which others wait.
    [[noreturn, gnu::cold]] static void end();

  private:
    const int exceptions_;
};

/// Returns `count` * `bytes` zeroed bytes from calloc. Retries as `new` does, and finally throws std::bad_alloc.
void* allocate_zeros(std::size_t count, std::size_t bytes);

}  // namespace starling
