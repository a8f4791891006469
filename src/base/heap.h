// Allocation in memory that others map: arithmetic on offsets alone, so those who make the same calls in the same order, as PEs of
// OpenSHMEM do, come to the same offsets. Nothing of it lies in the memory itself: what a program overwrites there it can't break.
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
    /// What every block begins at a multiple of, and is rounded up to: a cache line, so that what two PEs write lies apart.
    static constexpr uint64_t kAlignment = 64;

    explicit Heap(uint64_t limit = 0) : limit_(limit / kAlignment * kAlignment) {}

    /// The offset of so many bytes (not 0), a multiple of `alignment`, a power of two; kNone if the limit leaves no room. The
    /// smallest gap that fits, of several the first.
    uint64_t allocate(uint64_t bytes, uint64_t alignment = kAlignment);
    /// Makes a block that long in its place; false if it can't be.
    bool resize(uint64_t offset, uint64_t bytes);
    /// False if no block begins there.
    bool free(uint64_t offset);

    /// Bytes of the block that begins there, as asked for; 0 if none does.
    uint64_t bytes_at(uint64_t offset) const;
    /// Whether all of it lies in one block.
    bool holds(uint64_t offset, uint64_t bytes) const;
    /// Behind the last byte that was ever in a block.
    uint64_t high_water() const { return high_; }
    /// What has been given back since it was at `before` never was anybody's.
    void restore_high_water(uint64_t before) { high_ = before > top_ ? before : top_; }
    uint64_t limit() const { return limit_; }
    size_t blocks() const { return blocks_.size(); }

  private:
    struct Block {
        uint64_t room, bytes;
    };
    void add_gap(uint64_t offset, uint64_t bytes);
    void remove_gap(std::map<uint64_t, uint64_t>::iterator gap);

    std::map<uint64_t, Block> blocks_;                 ///< by offset
    std::map<uint64_t, uint64_t> gaps_;                ///< offset → bytes, below top_
    std::set<std::pair<uint64_t, uint64_t>> by_size_;  ///< the same as (bytes, offset)
    uint64_t top_ = 0;                                 ///< behind the last block; all above is free
    uint64_t high_ = 0;
    uint64_t limit_;
};

}  // namespace starling
