// The ranks that receive mpiexec's standard input.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace starling::launch {

/// Ranges of ranks. By default rank 0 alone receives the input.
struct InputRanks {
    struct RankRange {
        uint32_t first = 0, last = 0;
    };
    std::vector<RankRange> ranges;  ///< ascending and disjoint; empty: no rank receives the input

    static InputRanks of_rank(uint32_t rank) { return {{{rank, rank}}}; }
    /// Returns whether the rank receives the input.
    bool contains(uint32_t rank) const {
        for (const RankRange& range : ranges)
            if (rank >= range.first && rank <= range.last) return true;
        return false;
    }
    /// Returns whether a rank of the run `first`, `first + stride`, ... with `count` members receives the input.
    bool meets(uint32_t first, uint32_t stride, uint32_t count) const;
    /// Returns whether exactly one rank receives the input, which then may read mpiexec's own descriptor.
    bool is_single() const { return ranges.size() == 1 && ranges[0].first == ranges[0].last; }
};

/// Reads `all`, `none`, or ranks and ranges such as 0,2-4. Returns false for any other text.
bool read_input_ranks(std::string_view text, InputRanks& out);

}  // namespace starling::launch
