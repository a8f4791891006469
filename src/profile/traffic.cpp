#include "profile/traffic.h"

#include <algorithm>

#include "base/state.h"
#include "profile/collectives.h"

namespace starling::profile {

namespace {

using Used = List<Traffic, &Traffic::hook>;
STARLING_STATE Used* used = nullptr;      ///< list of the processes with traffic in this phase; null if counting is off
STARLING_STATE Tally* by_size = nullptr;  ///< messages of this phase by size

}  // namespace

uint64_t Traffic::messages() const { return messages(PathKind::base) + messages(PathKind::connection); }

uint64_t Traffic::messages(PathKind way) const {
    uint64_t sum = 0;
    for (const auto& size : tallies) sum += size[static_cast<size_t>(way)].messages;
    for (const auto& access : by_packets) sum += access[static_cast<size_t>(way)].messages;
    return sum;
}

uint64_t Traffic::bytes() const {
    uint64_t sum = 0;
    for (const auto& size : tallies)
        for (const Tally& tally : size) sum += tally.bytes;
    for (const auto& access : by_packets)
        for (const Tally& tally : access) sum += tally.bytes;
    return sum;
}

void start_counting() {
    if (used) return;
    used = new Used;
    by_size = new Tally[kSizeBins]{};
    start_collectives();
}

bool counting() { return used != nullptr; }

Traffic* open_traffic(uint64_t job, uint32_t rank) { return used ? new Traffic(job, rank, by_size) : nullptr; }

void close_traffic(Traffic* traffic) {
    if (!traffic) return;
    if (traffic->hook.linked())
        traffic->closed = true;
    else
        delete traffic;
}

void list(Traffic& traffic) { used->push_back(&traffic); }

void each_traffic(void (*visit)(const Traffic& traffic, void* argument), void* argument) {
    if (!used) return;
    for (Traffic* traffic = used->front(); traffic; traffic = used->next(traffic)) visit(*traffic, argument);
}

const Tally* sizes() { return by_size; }

void clear_traffic() {
    if (!used) return;
    std::fill_n(by_size, kSizeBins, Tally{});
    while (Traffic* const traffic = used->pop_front()) {
        std::fill_n(&traffic->tallies[0][0], kSizes * kWays, Tally{});
        std::fill_n(&traffic->by_packets[0][0], kAccesses * kWays, Tally{});
        std::fill_n(&traffic->in_memory[0], kAccesses, Tally{});
        if (traffic->closed) delete traffic;
    }
}

}  // namespace starling::profile
