// An allocator for memory that other processes map. It works on offsets alone, so processes that make the same calls in the same order, as
// PEs of OpenSHMEM do, get the same offsets. Its data structures are outside that memory, so a program that overwrites its heap cannot
// corrupt them.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace starling {

class Heap {
  public:
    static constexpr uint64_t kNone = ~uint64_t{0};
    /// Alignment and granularity of every block: a cache line, so that blocks that two PEs write never share one.
    static constexpr uint64_t kAlignment = 64;

    explicit Heap(uint64_t limit = 0) : limit_(limit / kAlignment * kAlignment) {}

    /// Returns the offset of a new block of `bytes` (not 0), a multiple of `alignment` (a power of two), or kNone if the limit leaves no
    /// room. Takes the smallest gap that fits, and of several such gaps the first.
    uint64_t allocate(uint64_t bytes, uint64_t alignment = kAlignment);
    /// Changes a block's length in place; returns false if that is impossible.
    bool resize(uint64_t offset, uint64_t bytes);
    /// Frees a block; returns false if none begins at `offset`.
    bool free(uint64_t offset);

    /// Returns the requested length of the block at `offset`, or 0 if none begins there.
    uint64_t bytes_at(uint64_t offset) const;
    /// Returns whether all of the range is within one block.
    bool holds(uint64_t offset, uint64_t bytes) const;
    /// Returns the end of the highest byte that was ever in a block.
    uint64_t high_water() const { return high_; }
    /// Resets high_water() to `before`, an earlier value of it, if the blocks allocated since then were freed without having been used.
    void restore_high_water(uint64_t before) { high_ = before > top_ ? before : top_; }
    uint64_t limit() const { return limit_; }
    size_t blocks() const { return blocks_.size(); }

  private:
    struct HeapBlock {
        uint64_t room, bytes;
    };
    void add_gap(uint64_t offset, uint64_t bytes);
    void remove_gap(std::map<uint64_t, uint64_t>::iterator gap);

    std::map<uint64_t, HeapBlock> blocks_;             ///< the blocks by offset
    std::map<uint64_t, uint64_t> gaps_;                ///< free gaps below top_: offset → bytes
    std::set<std::pair<uint64_t, uint64_t>> by_size_;  ///< the gaps as (bytes, offset)
    uint64_t top_ = 0;                                 ///< end of the last block; all memory above is free
    uint64_t high_ = 0;
    uint64_t limit_;
};

}  // namespace starling
