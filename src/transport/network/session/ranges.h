// A set of stream bytes, as sorted ranges that do not touch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace starling::network {

struct Range {
    uint64_t start, end;
    uint64_t length() const { return end - start; }
    bool operator==(const Range&) const = default;
};

/// For the handful of ranges that losses leave behind: adding and removing is linear in their number. Empty costs
/// three words. Not thread-safe.
class RangeSet {
  public:
    bool empty() const { return ranges_.empty(); }
    size_t size() const { return ranges_.size(); }
    const Range& operator[](size_t i) const { return ranges_[i]; }
    const Range& front() const { return ranges_.front(); }
    const Range& back() const { return ranges_.back(); }

    void add(Range range);
    void remove(Range range);
    /// Whether all of the range is in the set; an empty one is.
    bool covers(Range range) const;
    /// The first piece of `range` that is not in the set; empty at range.end if there is none.
    Range first_gap(Range range) const;
    /// Gives the memory back as well: sessions idle for long.
    void clear() { std::vector<Range>().swap(ranges_); }

  private:
    /// Index of the first range that ends at or after `offset`.
    size_t reaching(uint64_t offset) const;
    std::vector<Range> ranges_;
};

}  // namespace starling::network
