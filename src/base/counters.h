// What this process counts: the rows of counters.def as members of one object, which fills a page of its own. In a job
// that page is shared: it lies in the process's region of the job segment, so `starling top` reads the very
// words that the process increments. Counting costs an increment of memory that no other process writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace starling {

inline constexpr size_t kCounterPage = 4096;

/// A counter: one thread at a time counts, while others and other processes read.
class Count {
  public:
    operator uint64_t() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
    Count& operator=(uint64_t value) {
        __atomic_store_n(&value_, value, __ATOMIC_RELAXED);
        return *this;
    }
    Count& operator+=(uint64_t n) {
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
        // What a relaxed load and store come to, in the one instruction that compilers don't make of them.
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
    uint64_t layout = 0;  ///< counter_layout() once the page is shared; says what the words behind it mean
    uint64_t since = 0;   ///< now_ns() when counting began
#define COUNTER(member, kind, group, unit, doc) Count member;
#include "base/counters.def"
#undef COUNTER
    Count last_waited;  ///< now_ns() when a wait that was no longer spinning last gave way or ended; 0: never
};
static_assert(sizeof(Counters) == kCounterPage);

/// This process's. Written with the library's lock held; another process reads it with counter_value().
extern Counters counters;

/// Moves the counters, with what they count already, into `page` of memory shared with others: from then on both
/// are the same memory. `page` is page-aligned and stays mapped or not, as the caller likes. False if the
/// system does not allow it; counting goes on in private then.
bool share_counters(void* page);

enum class CounterKind : uint8_t { counter, level, timer };
enum class CounterGroup : uint8_t { paths, connections, accesses, windows, plans, network, verbs, multicast, waiting };

/// One row of the table.
struct Counter {
    const char* name;
    CounterKind kind;
    CounterGroup group;
    uint16_t offset;  ///< of the member in Counters
    const char* unit;
    const char* doc;
};

struct CounterGroupInfo {
    const char* name;
    const char* doc;
};

/// The rows, in the order of counters.def.
const Counter* counter_table(size_t& count);
/// The row of this name, nullptr if there is none.
const Counter* find_counter(const char* name);
/// The groups, in the order of CounterGroup.
const CounterGroupInfo* counter_groups(size_t& count);

/// Tells tables apart: processes with equal layouts have equal tables.
uint64_t counter_layout();

/// The value now. Safe while another thread or process counts: the value is one that was there.
inline uint64_t counter_value(const Counter& counter, const Counters& from = counters) {
    return *reinterpret_cast<const Count*>(reinterpret_cast<const char*>(&from) + counter.offset);
}

}  // namespace starling
