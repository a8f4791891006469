#include "base/counters.h"

#include <sys/mman.h>

#include <cstring>

#include "base/clock.h"
#include "base/hash.h"
#include "base/state.h"

namespace starling {

STARLING_STATE Counters counters;

namespace {

constexpr CounterGroupInfo kGroups[] = {
    {"paths", "packets and bytes sent, by the path they took"},
    {"connections", "connections to peers, of any transport"},
    {"accesses", "accesses of other processes' memory, unless it is mapped"},
    {"windows", "windows of MPI, and locks of their targets"},
    {"plans", "persistent collective operations"},
    {"network", "datagrams between hosts: losses, retransmissions, acknowledgements"},
    {"verbs", "InfiniBand and RoCE: ports, their traffic and their memory"},
    {"multicast", "multicast groups and their traffic"},
    {"waiting", "how the process waits for others"},
};

constexpr Counter kCounters[] = {
#define COUNTER(member, kind, group, unit, doc) \
    {#member, CounterKind::kind, CounterGroup::group, static_cast<uint16_t>(offsetof(Counters, member)), unit, doc},
#include "base/counters.def"
#undef COUNTER
};

constexpr uint64_t hash_table() {
    uint64_t hash = kEmptyHash;
    for (const Counter& row : kCounters) hash = hash_on(hash_on(hash, row.name), row.offset);
    return hash;
}
constexpr uint64_t kLayout = hash_table();

}  // namespace

bool share_counters(void* page) {
    counters.layout = kLayout;
    counters.since = now_ns();
    std::memcpy(page, &counters, sizeof counters);
    // An old size of 0 creates a second mapping of the same shared page. The counters keep their address, so counting needs no pointer, and
    // the segment's descriptor need not stay open.
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
