#include "transport/shm/ring.h"

#include <cstring>

namespace starling::shm {

bool RingWriter::refresh_lines() {
    lines_limit_ = ring_->consumed.lines.load(std::memory_order_acquire);
    return next_.number - lines_limit_ < kRingLines;
}

bool RingWriter::refresh_bulk(uint64_t end) {
    bulk_limit_ = ring_->consumed.bulk.load(std::memory_order_acquire);
    return end - bulk_limit_ <= kBulkBytes;
}

void RingReader::reset(Ring& ring) {
    // Only the stamps matter; a slot never used is all zero already and is not touched.
    for (Line& line : ring.lines) {
        if (line.header.stamp.load(std::memory_order_relaxed) == 0) break;
        line.header.stamp.store(0, std::memory_order_relaxed);
    }
    ring.consumed.lines.store(0, std::memory_order_relaxed);
    ring.consumed.bulk.store(0, std::memory_order_release);
    *this = RingReader();
    ring_ = &ring;
    next_ = {ring.lines};
}

}  // namespace starling::shm
