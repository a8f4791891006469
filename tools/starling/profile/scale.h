// Who would talk to whom with another number of processes: by the structure of the neighbourhoods, not by rank numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"

namespace starling::analysis {

/// How the pairs of a run lie to each other.
struct Structure {
    /// Of the process grid, the dimension first whose neighbours have the next rank; empty: none fits, and the ranks are taken for
    /// pieces of a curve through the problem.
    std::vector<uint32_t> grid;
    /// "4 x 4 grid", "curve"
    std::string name() const;
};

/// The grid that explains at least 0.9 of the messages by partners at the same few offsets everywhere; the smallest offsets win.
Structure structure_of(const std::vector<Pair>& pairs, uint32_t size);

/// The pairs of a run of `to` processes, if `pairs` are those of one of `from` and lie so.
/// In a grid: the same offsets in a grid of `to` processes, with the messages of the corresponding place. On a curve: partners that
/// are near everywhere stay as near; a far pair becomes the pairs of its pieces, which lie parallel or mirrored to each other as
/// the pairs around it do.
std::vector<Pair> scale(const std::vector<Pair>& pairs, const Structure& structure, uint32_t from, uint32_t to);

}  // namespace starling::analysis
