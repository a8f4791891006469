#include "collective/node_area.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "base/state.h"
#include "link/job.h"
#include "transport/shm/region.h"

namespace starling::collective {

namespace {

/// The parts of this process's region that were handed out. They are reused whole, for as many participants, once all of
/// these have let go.
struct Parts {
    int64_t end;
    /// Offsets, retired first to last, by number of participants and whether they are for meetings only.
    std::map<std::pair<int, bool>, std::deque<int64_t>> retired;
};
STARLING_STATE Parts* parts = nullptr;
/// Retired parts that are looked at before a new one is taken.
constexpr size_t kLooks = 4;

std::byte* own_region() {
    const link::Process& me = link::self();
    return shm::Region(me.job->segment().region(me.rank)).collective();
}

}  // namespace

void NodeLayout::clear() const {
    const auto ranks = static_cast<size_t>(n_);
    std::memset(base_, 0, (kLines + ranks) * sizeof(Line));
    for (uint32_t i = 0; i < kRingBuffers; ++i) std::memset(static_cast<void*>(&ring(i)), 0, sizeof(Header));
    for (int i = 0; i < n_; ++i)
        for (uint32_t use = 0; use < 2; ++use) std::memset(static_cast<void*>(&slot(i, use)), 0, sizeof(Header));
}

void LaneLayout::clear() const {
    // Everyone who leaves has said so there, if there was an operation.
    if (done(0).load() == 0) return;
    std::memset(base_, 0, lane_offset(n_, 0));
    for (uint32_t i = 0; i < kLanes; ++i) {
        arrivals(i).store(0);
        std::memset(static_cast<void*>(&ring(i)), 0, sizeof(Header));
        for (int each = 0; each < n_; ++each) std::memset(static_cast<void*>(&slot(each, i)), 0, sizeof(Header));
    }
}

int64_t allocate_area(int n, AreaUse use) {
    if (n > NodeLayout::kMost) return kNoArea;
    if (!parts) {
        const int world = static_cast<int>(link::self().job->segment().header().local_ranks);
        parts = new Parts{world <= NodeLayout::kMost ? static_cast<int64_t>(NodeLayout::bytes(world)) : 0, {}};
    }
    const bool for_meetings = use == AreaUse::meetings;
    std::byte* region = own_region();
    std::deque<int64_t>& retired = parts->retired[{n, for_meetings}];
    for (size_t look = 0; look < std::min(kLooks, retired.size()); ++look) {
        const int64_t offset = retired.front();
        retired.pop_front();
        const NodeLayout layout(region + offset, n);
        if (layout.detached().load() == static_cast<uint32_t>(n)) {
            layout.clear();
            if (!for_meetings) LaneLayout(region + offset, n).clear();
            return offset;
        }
        retired.push_back(offset);
    }
    const int64_t offset = parts->end;
    const uint64_t bytes = for_meetings ? NodeLayout::bytes_for_meetings(n) : NodeLayout::bytes(n);
    const uint64_t room = use == AreaUse::communicator ? shm::kCollectiveBytes : shm::kCollectiveBytes / 2;
    if (static_cast<uint64_t>(offset) + bytes > room) return kNoArea;
    parts->end += static_cast<int64_t>(bytes);
    return offset;
}

void retire_area(int64_t offset, int n, AreaUse use) { parts->retired[{n, use == AreaUse::meetings}].push_back(offset); }

}  // namespace starling::collective
