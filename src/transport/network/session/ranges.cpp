#include "transport/network/session/ranges.h"

#include <algorithm>

namespace starling::network {

size_t RangeSet::reaching(uint64_t offset) const {
    const auto found = std::lower_bound(ranges_.begin(), ranges_.end(), offset,
                                        [](const SequenceRange& range, uint64_t at) { return range.end < at; });
    return static_cast<size_t>(found - ranges_.begin());
}

void RangeSet::add(SequenceRange range) {
    if (range.start >= range.end) return;
    const size_t first = reaching(range.start);
    size_t last = first;  // index past the last range that merges with the new one
    for (; last < ranges_.size() && ranges_[last].start <= range.end; ++last) {
        range.start = std::min(range.start, ranges_[last].start);
        range.end = std::max(range.end, ranges_[last].end);
    }
    const auto at = ranges_.begin() + static_cast<ptrdiff_t>(first);
    if (first == last) {
        ranges_.insert(at, range);
        return;
    }
    *at = range;
    ranges_.erase(at + 1, ranges_.begin() + static_cast<ptrdiff_t>(last));
}

void RangeSet::remove(SequenceRange range) {
    if (range.start >= range.end) return;
    for (size_t i = reaching(range.start); i < ranges_.size() && ranges_[i].start < range.end;) {
        const SequenceRange old = ranges_[i];
        const SequenceRange before{old.start, std::min(old.end, range.start)};
        const SequenceRange after{std::max(old.start, range.end), old.end};
        const bool keep_before = before.start < before.end, keep_after = after.start < after.end;
        const auto at = ranges_.begin() + static_cast<ptrdiff_t>(i);
        if (keep_before && keep_after) {
            *at = before;
            ranges_.insert(at + 1, after);
            return;
        }
        if (keep_before || keep_after) {
            *at = keep_before ? before : after;
            ++i;
        } else {
            ranges_.erase(at);
        }
    }
}

bool RangeSet::covers(SequenceRange range) const {
    if (range.start >= range.end) return true;
    const size_t i = reaching(range.start + 1);
    return i < ranges_.size() && ranges_[i].start <= range.start && ranges_[i].end >= range.end;
}

SequenceRange RangeSet::first_gap(SequenceRange range) const {
    for (size_t i = reaching(range.start); i < ranges_.size() && range.start < range.end; ++i) {
        if (ranges_[i].start > range.start) return {range.start, std::min(range.end, ranges_[i].start)};
        range.start = std::max(range.start, ranges_[i].end);
    }
    return range.start < range.end ? range : SequenceRange{range.end, range.end};
}

}  // namespace starling::network
