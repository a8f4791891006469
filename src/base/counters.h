// What this process counts: the rows of counters.def as members of one object, which fills a page of its own. In a job
// that page is shared: it lies in the process's region of the job segment, so `starling top` reads the very
// words that the process increments. Counting costs an increment of memory that no other process writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace starling {

inline constexpr size_t kCounterPage = 4096;

struct alignas(kCounterPage) Counters {
    uint64_t layout = 0;  ///< counter_layout() once the page is shared; says what the words behind it mean
    uint64_t since = 0;   ///< now_ns() when counting began
#define COUNTER(member, kind, group, unit, doc) uint64_t member = 0;
#include "base/counters.def"
#undef COUNTER
};
static_assert(sizeof(Counters) == kCounterPage);

/// This process's. Written with the library's lock held; another process reads it with counter_value().
extern Counters counters;

/// Moves the counters, with what they count already, into `page` of memory shared with others: from then on both
/// are the same memory. `page` is page-aligned and stays mapped or not, as the caller likes. False if the
/// system does not allow it; counting goes on in private then.
bool share_counters(void* page);

enum class CounterKind : uint8_t { counter, level, timer };
enum class CounterGroup : uint8_t { paths, connections, network, waiting };

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
    const auto* word = reinterpret_cast<const uint64_t*>(reinterpret_cast<const char*>(&from) + counter.offset);
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

}  // namespace starling
