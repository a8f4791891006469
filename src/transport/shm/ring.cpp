#include "transport/shm/ring.h"

#include <algorithm>

#include "base/counter_start.h"

namespace starling::shm {

namespace {

/// Number of the first line of a ring that has had no sender. With kBeforeWrap (a test build) it is four laps before the 32-bit stamps
/// wrap, so that all lines are written before the wrap.
constexpr uint64_t kFirstLine = kBeforeWrap ? ((uint64_t{1} << 32) - 4) * kRingLines : 0;

}  // namespace

bool RingWriter::refresh_lines() {
    lines_limit_ = ring_->consumed.lines.load(std::memory_order_acquire);
    return next_.number - lines_limit_ < kRingLines;
}

bool RingWriter::refresh_bulk(uint64_t end) {
    bulk_limit_ = ring_->consumed.bulk.load(std::memory_order_acquire);
    return end - bulk_limit_ <= kBulkBytes;
}

void RingReader::reset(Ring& ring, const std::byte* outbox) {
    // The last sender has written less than a lap beyond the credit that it had. So in the lap after the next, none of the stamps that it
    // left is valid.
    const uint64_t told = std::max(ring.consumed.lines.load(std::memory_order_relaxed), kFirstLine);
    const uint64_t begin = (told / kRingLines + 2) * kRingLines;
    ring.consumed.bulk.store(0, std::memory_order_relaxed);
    ring.consumed.lines.store(begin, std::memory_order_release);
    *this = RingReader();
    ring_ = &ring;
    next_ = LinePosition::at(ring, begin);
    outbox_ = outbox;
}

}  // namespace starling::shm
