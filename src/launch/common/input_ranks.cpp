#include "launch/common/input_ranks.h"

#include <algorithm>
#include <string>

#include "launch/common/text.h"

namespace starling::launch {

namespace {

bool read_range(std::string_view text, InputRanks::RankRange& out) {
    const size_t dash = text.find('-');
    if (!read_number(std::string(text.substr(0, dash)), out.first)) return false;
    out.last = out.first;
    return dash == std::string_view::npos ||
           (read_number(std::string(text.substr(dash + 1)), out.last) && out.last >= out.first);
}

}  // namespace

bool InputRanks::meets(uint32_t first, uint32_t stride, uint32_t count) const {
    if (count == 0) return false;
    const uint64_t step = std::max(stride, 1u), end = first + step * (count - 1);
    return std::any_of(ranges.begin(), ranges.end(), [&](const RankRange& range) {
        if (range.last < first || range.first > end) return false;
        const uint64_t from = range.first <= first ? first : first + (range.first - first + step - 1) / step * step;
        return from <= std::min<uint64_t>(range.last, end);
    });
}

bool read_input_ranks(std::string_view text, InputRanks& out) {
    out.ranges.clear();
    if (text == "none") return true;
    if (text == "all") {
        out.ranges.push_back({0, ~0u});
        return true;
    }
    while (true) {
        const size_t comma = text.find(',');
        InputRanks::RankRange range;
        if (!read_range(text.substr(0, comma), range)) return false;
        out.ranges.push_back(range);
        if (comma == std::string_view::npos) return true;
        text.remove_prefix(comma + 1);
    }
}

}  // namespace starling::launch
