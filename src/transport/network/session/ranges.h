// A set of stream bytes, stored as sorted ranges that do not touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starling::network {

struct SequenceRange {
    uint64_t start, end;
    uint64_t length() const { return end - start; }
    bool operator==(const SequenceRange&) const = default;
};

/// Sorted ranges in a vector. Efficient for the few ranges that losses cause: adding and removing is linear in their number. An empty set
/// takes three words. Not thread-safe.
class RangeSet {
  public:
    bool empty() const { return ranges_.empty(); }
    size_t size() const { return ranges_.size(); }
    const SequenceRange& operator[](size_t i) const { return ranges_[i]; }
    const SequenceRange& front() const { return ranges_.front(); }
    const SequenceRange& back() const { return ranges_.back(); }

    void add(SequenceRange range);
    void remove(SequenceRange range);
    /// Returns whether the set contains all of the range; true for an empty range.
    bool covers(SequenceRange range) const;
    /// Returns the first part of `range` that is not in the set, or an empty range at range.end if there is none.
    SequenceRange first_gap(SequenceRange range) const;
    /// Empties the set and frees its memory, because sessions are idle for long times.
    void clear() { std::vector<SequenceRange>().swap(ranges_); }

  private:
    /// Returns the index of the first range that ends at or after `offset`.
    size_t reaching(uint64_t offset) const;
    std::vector<SequenceRange> ranges_;
};

}  // namespace starling::network
