// The process's performance counters: the rows of counters.def as members of one object, which fills a page. In a job that page is shared
// memory in the process's region of the job segment, so `starling top` reads the words that the process increments. Counting costs an
// increment of memory that no other process writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace starling {

inline constexpr size_t kCounterPage = 4096;

/// A counter. One thread at a time increments it; other threads and processes may read it.
class Count {
  public:
    operator uint64_t() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
    Count& operator=(uint64_t value) {
        __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
        return *this;
    }
    Count& operator+=(uint64_t n) {
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
        // A relaxed load and store in one instruction; compilers do not merge them.
        asm("addq %1, %0" : "+m"(value_) : "er"(n));
#else
        __atomic_store_n(&value_, *this + n, __ATOMIC_RELAXED);
#endif
        return *this;
    }
    Count& operator-=(uint64_t n) { return *this += -n; }
    Count& operator++() { return *this += 1; }
    Count& operator--() { return *this -= 1; }
    uint64_t operator++(int) { return (*this += 1) - 1; }

  private:
    uint64_t value_ = 0;
};
static_assert(sizeof(Count) == sizeof(uint64_t) && std::is_trivially_copyable_v<Count>);

struct alignas(kCounterPage) Counters {
    uint64_t layout = 0;  ///< counter_layout() once the page is shared: identifies the meaning of the other words
    uint64_t since = 0;   ///< now_ns() when counting began
#define COUNTER(member, kind, group, unit, doc) Count member;
#include "base/counters.def"
#undef COUNTER
    Count last_waited;  ///< now_ns() when a wait that no longer spun last yielded or ended; 0: never
};
static_assert(sizeof(Counters) == kCounterPage);

/// The counters of this process. Written with the library's lock held; another process reads them with counter_value().
extern Counters counters;

/// Moves the counters, with their values, into `page` of shared memory: from then on both addresses map the same memory. `page` is
/// page-aligned; the caller may unmap it or keep it mapped. Returns false if the system does not allow it; counting then continues in
/// private memory.
bool share_counters(void* page);

enum class CounterKind : uint8_t { counter, level, timer };
enum class CounterGroup : uint8_t { paths, connections, accesses, windows, plans, network, verbs, multicast, waiting };

/// One row of the table of counters.
struct Counter {
    const char* name;
    CounterKind kind;
    CounterGroup group;
    uint16_t offset;  ///< offset of the member in Counters
    const char* unit;
    const char* doc;
};

struct CounterGroupInfo {
    const char* name;
    const char* doc;
};

/// Returns the rows, in the order of counters.def.
const Counter* counter_table(size_t& count);
/// Returns the row of this name, or nullptr if there is none.
const Counter* find_counter(const char* name);
/// Returns the groups, in the order of CounterGroup.
const CounterGroupInfo* counter_groups(size_t& count);

/// Returns a hash of the table: processes with equal layouts have equal tables.
uint64_t counter_layout();

/// Returns the present value. Safe while another thread or process counts: the value is one that the counter had.
inline uint64_t counter_value(const Counter& counter, const Counters& from = counters) {
    return *reinterpret_cast<const Count*>(reinterpret_cast<const char*>(&from) + counter.offset);
}

}  // namespace starling
