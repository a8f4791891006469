#include "base/counters.h"

#include <sys/mman.h>

#include <cstring>

#include "base/clock.h"

namespace starling {

constinit Counters counters;

namespace {

constexpr CounterGroupInfo kGroups[] = {
    {"paths", "packets and bytes sent, by the path they took"},
    {"connections", "connections to peers, of any transport"},
    {"network", "datagrams between hosts, and what becomes of them"},
    {"waiting", "how the process waits for others"},
};

constexpr Counter kCounters[] = {
#define COUNTER(member, kind, group, unit, doc) \
    {#member, CounterKind::kind, CounterGroup::group, static_cast<uint16_t>(offsetof(Counters, member)), unit, doc},
#include "base/counters.def"
#undef COUNTER
};

// FNV-1a over the names and places.
constexpr uint64_t hash_table() {
    uint64_t hash = 0xcbf29ce484222325;
    for (const Counter& row : kCounters) {
        for (const char* c = row.name; *c; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 0x100000001b3;
        hash = (hash ^ row.offset) * 0x100000001b3;
    }
    return hash;
}
constexpr uint64_t kLayout = hash_table();

}  // namespace

bool share_counters(void* page) {
    counters.layout = kLayout;
    counters.since = now_ns();
    std::memcpy(page, &counters, sizeof counters);
    // An old size of 0 asks for a second mapping of the same shared page: the counters keep their address, so counting
    // needs no pointer, and the segment's descriptor need not be kept for it.
    void* moved = mremap(page, 0, kCounterPage, MREMAP_MAYMOVE | MREMAP_FIXED, static_cast<void*>(&counters));
    return moved != MAP_FAILED;
}

const Counter* counter_table(size_t& count) {
    count = sizeof kCounters / sizeof kCounters[0];
    return kCounters;
}

const Counter* find_counter(const char* name) {
    for (const Counter& row : kCounters)
        if (!std::strcmp(row.name, name)) return &row;
    return nullptr;
}

const CounterGroupInfo* counter_groups(size_t& count) {
    count = sizeof kGroups / sizeof kGroups[0];
    return kGroups;
}

uint64_t counter_layout() { return kLayout; }

}  // namespace starling
