#include "file/block_map.h"

namespace starling::file {

BlockMap::BlockMap(const std::vector<Extent>& ranges, int64_t block, int aggregators)
    : block_(block), aggregators_(aggregators) {
    for (const Extent& range : ranges)
        if (range.bytes > 0) {
            const bool is_first = runs_.empty();
            low_ = is_first ? range.offset : std::min(low_, range.offset);
            high_ = is_first ? range.end() : std::max(high_, range.end());
            runs_.push_back({block_of(range.offset), block_of(range.end() - 1)});
        }
    std::sort(runs_.begin(), runs_.end(), [](const NumberRun& a, const NumberRun& b) { return a.first < b.first; });
    size_t kept = 0;
    for (const NumberRun& run : runs_)
        if (kept > 0 && run.first <= runs_[kept - 1].last + 1)
            runs_[kept - 1].last = std::max(runs_[kept - 1].last, run.last);
        else
            runs_[kept++] = run;
    runs_.resize(kept);
}

int64_t BlockMap::blocks() const {
    int64_t sum = 0;
    for (const NumberRun& run : runs_) sum += run.last - run.first + 1;
    return sum;
}

bool BlockMap::Walk::next(OwnedBlock& block) {
    if (run_ == map_.runs_.size()) return false;
    const NumberRun& run = map_.runs_[run_];
    at_ = std::max(at_, run.first);
    block = {at_, map_.owner(at_), turns_[static_cast<size_t>(map_.owner(at_))]++};
    if (++at_ > run.last) ++run_;
    return true;
}

int64_t choose_block(const Extent& all, int64_t most, int64_t unit, int aggregators, int turns) {
    constexpr int64_t kLeast = 64 << 10;
    const int64_t share = std::max(all.bytes / (int64_t{turns} * aggregators) + 1, kLeast);
    const int64_t block = std::min(share, most);
    if (unit > most) return most;
    return std::min((block + unit - 1) / unit, most / unit) * unit;
}

}  // namespace starling::file
