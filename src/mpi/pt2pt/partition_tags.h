// Tags of partitions: each partitioned send has as many in a row as it has partitions, none of which another one has as long as it lives.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "base/counter_start.h"

namespace starling::mpi {

class PartitionTags {
  public:
    /// There are so many: tags of messages are not negative.
    static constexpr uint32_t kTags = 1u << 31;

    explicit PartitionTags(uint32_t next = kCounterStart % kTags) : next_(next) {}

    /// The first of so many. They come in a row, so that what was given back is not used again soon. std::bad_alloc if there are not so
    /// many left.
    uint32_t draw(uint32_t count);
    /// All of the row that begins there.
    void give_back(uint32_t first) { held_.erase(first); }

  private:
    std::map<uint32_t, uint32_t> held_;  ///< first tag → how many
    uint32_t next_;
};

}  // namespace starling::mpi
