// How the range of a collective transfer is dealt to its aggregators: in blocks of equal length, which are counted from the file's
// beginning and go to the aggregators in turn. So each byte of the file has one aggregator, and no two aggregators share a stripe or page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "file/system/open_file.h"

namespace starling::file {

class BlockMap {
  public:
    /// `ranges`: the range of the file of each member, empty ones allowed. `block`: bytes of a block.
    BlockMap(const std::vector<Extent>& ranges, int64_t block, int aggregators);

    int64_t block_bytes() const { return block_; }
    int aggregators() const { return aggregators_; }
    int64_t block_of(int64_t offset) const { return offset / block_; }
    int owner(int64_t number) const { return static_cast<int>(number % aggregators_); }
    /// Returns the block's part of the file, cut at the largest offset.
    Extent extent(int64_t number) const {
        const int64_t first = number * block_;
        return {first, std::min(block_, std::numeric_limits<int64_t>::max() - first)};
    }
    /// Returns the range of all members.
    Extent all() const { return {low_, high_ - low_}; }
    /// Returns the number of blocks in which some member has data.
    int64_t blocks() const;

    /// A block of which some member's range has a part. `turn` counts the earlier such blocks of the same aggregator.
    struct OwnedBlock {
        int64_t number = -1;
        int owner = 0;
        int64_t turn = 0;
    };
    /// Iterates over these blocks in increasing order.
    class Walk {
      public:
        explicit Walk(const BlockMap& map) : map_(map), turns_(static_cast<size_t>(map.aggregators_)) {}
        /// Returns false at the end.
        bool next(OwnedBlock& block);

      private:
        const BlockMap& map_;
        std::vector<int64_t> turns_;
        size_t run_ = 0;
        int64_t at_ = -1;
    };

  private:
    struct NumberRun {
        int64_t first, last;
    };
    std::vector<NumberRun> runs_;  ///< runs of numbers of such blocks
    int64_t block_;
    int aggregators_;
    int64_t low_ = 0, high_ = 0;
};

/// Returns the length of blocks for a range: at most `most`, a multiple of `unit` if one fits, and short enough for `turns` blocks per
/// aggregator.
int64_t choose_block(const Extent& all, int64_t most, int64_t unit, int aggregators, int turns);

}  // namespace starling::file
