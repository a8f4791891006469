#include "transport/stream.h"

#include <algorithm>

namespace starling::transport {

uint64_t OutStream::waiting_bytes() const {
    uint64_t sum = source_.bytes - next_;
    for (const StreamRange& range : again_) sum += range.bytes();
    return sum;
}

StreamRange OutStream::peek(uint64_t most) const {
    const StreamRange first = again_.empty() ? StreamRange{next_, source_.bytes} : again_.back();
    return {first.begin, first.begin + std::min(most, first.bytes())};
}

StreamRange OutStream::extract(PathId path, uint64_t most) {
    const StreamRange taken = peek(most);
    if (!again_.empty()) {
        again_.back().begin = taken.end;
        if (again_.back().empty()) again_.pop_back();
    } else {
        next_ = taken.end;
    }
    if (path == kReliablePath || taken.empty()) return taken;
    if (!taken_.empty() && taken_.back().path == path && taken_.back().range.end == taken.begin)
        taken_.back().range.end = taken.end;
    else
        taken_.push_back({taken, path});
    return taken;
}

bool OutStream::lose(PathId path) {
    const size_t before = again_.size();
    std::erase_if(taken_, [&](const Taken& taken) {
        if (taken.path != path) return false;
        again_.push_back(taken.range);
        return true;
    });
    return again_.size() != before;
}

void OutStream::lose_all() {
    for (const Taken& taken : taken_) again_.push_back(taken.range);
    taken_.clear();
}

void OutStream::confirm(uint64_t offset) {
    const auto shorten = [offset](StreamRange& range) {
        range.begin = std::clamp(offset, range.begin, range.end);
        return range.empty();
    };
    std::erase_if(taken_, [&](Taken& taken) { return shorten(taken.range); });
    std::erase_if(again_, shorten);
}

uint64_t Coverage::add(StreamRange range) {
    range.begin = std::max(range.begin, prefix_);
    if (range.begin >= range.end) return 0;
    const uint64_t before = bytes_;
    if (islands_.empty() && range.begin == prefix_) {
        prefix_ = range.end;
        bytes_ += range.bytes();
        return bytes_ - before;
    }
    // Merge the range with all islands (ranges beyond the prefix) that it touches.
    auto first = std::lower_bound(islands_.begin(), islands_.end(), range.begin,
                                  [](const StreamRange& island, uint64_t at) { return island.end < at; });
    auto last = first;
    uint64_t known = 0;
    for (; last != islands_.end() && last->begin <= range.end; ++last) {
        known += last->bytes();
        range = {std::min(range.begin, last->begin), std::max(range.end, last->end)};
    }
    bytes_ += range.bytes() - known;
    if (range.begin == prefix_) {
        prefix_ = range.end;
        islands_.erase(first, last);
    } else {
        islands_.insert(islands_.erase(first, last), range);
    }
    return bytes_ - before;
}

}  // namespace starling::transport
