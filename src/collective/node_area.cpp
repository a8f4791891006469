#include "collective/node_area.h"

#include <cstring>
#include <vector>

#include "link/job.h"
#include "transport/shm/region.h"

namespace starling::collective {

namespace {

/// A part of this process's region that was handed out once. Parts are reused whole, for as many
/// participants.
struct Part {
    int64_t offset;
    int n;
    bool retired = false;
};

std::vector<Part>* parts = nullptr;

std::byte* own_region() {
    const link::Process& me = link::self();
    return shm::Region(me.job->segment().region(me.rank)).collective();
}

}  // namespace

void NodeLayout::clear() const {
    const auto ranks = static_cast<size_t>(n_);
    std::memset(base_, 0, (kLines + ranks) * sizeof(Line));
    for (uint32_t i = 0; i < kRingBuffers; ++i)
        std::memset(static_cast<void*>(&ring(i)), 0, sizeof(Header));
    for (int i = 0; i < n_; ++i)
        for (uint32_t use = 0; use < 2; ++use)
            std::memset(static_cast<void*>(&slot(i, use)), 0, sizeof(Header));
}

int64_t allocate_area(int n) {
    if (n > NodeLayout::kMost) return -1;
    if (!parts) parts = new std::vector<Part>;
    std::byte* region = own_region();
    for (Part& part : *parts) {
        if (!part.retired || part.n != n) continue;
        const NodeLayout layout(region + part.offset, n);
        if (layout.detached().load() != static_cast<uint32_t>(n)) continue;
        part.retired = false;
        layout.clear();
        return part.offset;
    }
    const int world = static_cast<int>(link::self().job->segment().header().local_ranks);
    int64_t end = world <= NodeLayout::kMost ? static_cast<int64_t>(NodeLayout::bytes(world)) : 0;
    for (const Part& part : *parts) end += static_cast<int64_t>(NodeLayout::bytes(part.n));
    if (static_cast<uint64_t>(end) + NodeLayout::bytes(n) > shm::kCollectiveBytes) return -1;
    parts->push_back({end, n});
    return end;
}

void retire_area(int64_t offset) {
    for (Part& part : *parts)
        if (part.offset == offset) part.retired = true;
}

}  // namespace starling::collective
