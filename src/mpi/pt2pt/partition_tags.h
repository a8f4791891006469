// Tags of partitions. Each partitioned send has a range of consecutive tags, one per partition, that no other partitioned send uses during
// its lifetime.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "base/counter_start.h"

namespace starling::mpi {

class PartitionTags {
  public:
    /// Number of tags: message tags are not negative.
    static constexpr uint32_t kTags = 1u << 31;

    explicit PartitionTags(uint32_t next = kCounterStart % kTags) : next_(next) {}

    /// Allocates `count` consecutive tags and returns the first. Allocation rotates, so released tags are not reused soon. Throws
    /// std::bad_alloc if no free range is long enough.
    uint32_t draw(uint32_t count);
    /// Releases the range that begins at `first`.
    void release(uint32_t first) { held_.erase(first); }

  private:
    std::map<uint32_t, uint32_t> held_;  ///< allocated ranges: first tag → number of tags
    uint32_t next_;
};

}  // namespace starling::mpi
