#include "collective/shm/layout.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>

#include "base/counter_start.h"
#include "base/state.h"
#include "link/host_memory.h"
#include "link/job.h"

namespace starling::collective {

namespace {

/// The areas allocated in this process's region. An area is reused as a whole, for the same number of participants, once all of its
/// participants have left it.
struct LayoutParts {
    int64_t end;
    /// Offsets of retired areas, oldest first. The key is the number of participants, and whether the area lacks pipeline buffers and
    /// lanes (AreaUse::meetings).
    std::map<std::pair<int, bool>, std::deque<int64_t>> retired;
};
STARLING_STATE LayoutParts* parts = nullptr;
/// The number of retired areas to check before a new one is allocated.
constexpr size_t kLooks = 4;

std::byte* own_region() {
    const link::Process& me = link::self();
    return link::SegmentRegion(me.job->segment().region(me.rank)).collective();
}

}  // namespace

void NodeLayout::clear(uint32_t first) const {
    const auto ranks = static_cast<size_t>(n_);
    std::memset(base_, 0, (kLines + ranks) * sizeof(StageLine));
    release(first).store(first);
    for (uint32_t i = 0; i < kRingBuffers; ++i) ring(i).sequence.store(first);
    for (int i = 0; i < n_; ++i) {
        done(i).store(first);
        for (uint32_t use = 0; use < slot_turns(n_); ++use) slot(i, use).sequence.store(first);
    }
}

void LaneLayout::clear(uint32_t first) const {
    std::memset(base_, 0, lane_offset(n_, 0));
    for (int each = 0; each < n_; ++each) done(each).store(first);
    for (uint32_t i = 0; i < kLanes; ++i) {
        arrivals(i).store(0);
        release(i).store(first);
        for (int each = 0; each < n_; ++each) slot(each, i).sequence.store(first);
    }
}

namespace {

/// Resets an area for a new owner; memory that has never been used is zero.
void make_ready(std::byte* base, int n, bool for_meetings, bool used) {
    NodeLayout(base, n).clear(kCounterStart);
    if (for_meetings) return;
    const LaneLayout lanes(base, n);
    // Every participant wrote its done() word in the lanes when it left, if any operation had used them. So unused lanes need no reset.
    if (!used || lanes.has_been_used(kCounterStart)) lanes.clear(kCounterStart);
}

}  // namespace

int64_t allocate_area(int n, AreaUse use) {
    if (n > NodeLayout::kMost) return kNoArea;
    if (!parts) {
        const int world = static_cast<int>(link::self().job->segment().header().local_ranks);
        parts = new LayoutParts{world <= NodeLayout::kMost ? static_cast<int64_t>(NodeLayout::bytes(world)) : 0, {}};
    }
    const bool for_meetings = use == AreaUse::meetings;
    std::byte* region = own_region();
    std::deque<int64_t>& retired = parts->retired[{n, for_meetings}];
    for (size_t look = 0; look < std::min(kLooks, retired.size()); ++look) {
        const int64_t offset = retired.front();
        retired.pop_front();
        const NodeLayout layout(region + offset, n);
        if (layout.detached().load() == static_cast<uint32_t>(n)) {
            make_ready(region + offset, n, for_meetings, true);
            return offset;
        }
        retired.push_back(offset);
    }
    const int64_t offset = parts->end;
    const uint64_t bytes = for_meetings ? NodeLayout::bytes_for_meetings(n) : NodeLayout::bytes(n);
    const uint64_t room = use == AreaUse::communicator ? link::kCollectiveBytes : link::kCollectiveBytes / 2;
    if (static_cast<uint64_t>(offset) + bytes > room) return kNoArea;
    parts->end += static_cast<int64_t>(bytes);
    if (kCounterStart != 0) make_ready(region + offset, n, for_meetings, false);
    return offset;
}

void retire_area(int64_t offset, int n, AreaUse use) { parts->retired[{n, use == AreaUse::meetings}].push_back(offset); }

}  // namespace starling::collective
