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
    std::map<int, std::deque<int64_t>> retired;  ///< offsets by number of participants, retired first to last
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
    LaneLayout(base_, n_).clear();
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

int64_t allocate_area(int n, bool for_one_operation) {
    if (n > NodeLayout::kMost) return -1;
    if (!parts) {
        const int world = static_cast<int>(link::self().job->segment().header().local_ranks);
        parts = new Parts{world <= NodeLayout::kMost ? static_cast<int64_t>(NodeLayout::bytes(world)) : 0, {}};
    }
    std::byte* region = own_region();
    std::deque<int64_t>& retired = parts->retired[n];
    for (size_t look = 0; look < std::min(kLooks, retired.size()); ++look) {
        const int64_t offset = retired.front();
        retired.pop_front();
        const NodeLayout layout(region + offset, n);
        if (layout.detached().load() == static_cast<uint32_t>(n)) {
            layout.clear();
            return offset;
        }
        retired.push_back(offset);
    }
    const int64_t offset = parts->end;
    const uint64_t room = for_one_operation ? shm::kCollectiveBytes / 2 : shm::kCollectiveBytes;
    if (static_cast<uint64_t>(offset) + NodeLayout::bytes(n) > room) return -1;
    parts->end += static_cast<int64_t>(NodeLayout::bytes(n));
    return offset;
}

void retire_area(int64_t offset, int n) { parts->retired[n].push_back(offset); }

}  // namespace starling::collective
