#include "transport/shm/outbox.h"

#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "base/page_size.h"
#include "transport/shm/ring.h"

namespace starling::shm {

static constexpr auto kInPage = static_cast<uint32_t>(kPage - 1);

static uint32_t to_pages(uint32_t bytes) { return (bytes + kInPage) & ~kInPage; }

std::byte* Outbox::reserve(uint32_t bytes, uint32_t window) {
    bytes_ = (bytes + (stays_apart(bytes) ? kApart : 0) + spare(bytes) + 63) & ~63u;
    start_ = rotation_.find(bytes_, window);
    return start_ == rotation_.kNone ? nullptr : memory_ + start_;
}

OutboxPlace Outbox::commit(const ReadReceipt& receipt, const void* reader, const std::byte* payload) {
    rotation_.hold(start_, bytes_, receipt, reader);
    touched_ = std::max(touched_, start_ + std::max(bytes_, kLeast));
    rests_ = 0;
    return {static_cast<uint32_t>(payload - memory_)};
}

void Outbox::release_idle() {
    if (touched_ > 0 && ++rests_ > 1) release_unused();
}

void Outbox::release_unused() {
    if (touched_ == 0) return;
    std::vector<std::pair<uint32_t, uint32_t>> busy;
    if (rotation_.held() > 0) rotation_.each([&](uint32_t start, uint32_t bytes) { busy.emplace_back(start, start + bytes); });
    std::sort(busy.begin(), busy.end());
    busy.emplace_back(to_pages(touched_), 0);
    uint32_t free_from = 0, still_touched = 0;
    for (const auto& [start, end] : busy) {
        const uint32_t first = to_pages(free_from), last = start & ~kInPage;
        // Where the system cannot free the pages, madvise() fails and the memory is kept.
        if (last > first) madvise(memory_ + first, last - first, MADV_REMOVE);
        free_from = end;
        still_touched = std::max(still_touched, end);
    }
    touched_ = still_touched;
}

}  // namespace starling::shm
