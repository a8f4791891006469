// Predicts the partners of processes for another number of processes, from the structure of the neighborhoods, not from rank numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"

namespace starling::analysis {

/// The structure of the pairs of a run.
struct Structure {
    /// Dimensions of the process grid; in the first dimension, neighbors have consecutive ranks. Empty: no grid fits, and the ranks are
    /// treated as pieces of a curve through the problem.
    std::vector<uint32_t> grid;
    /// Returns text such as "4 x 4 grid" or "curve".
    std::string name() const;
};

/// Returns the grid in which at least 0.9 of the messages are explained by partners at the same few offsets everywhere. The smallest
/// offsets win.
Structure structure_of(const std::vector<Pair>& pairs, uint32_t size);

/// Predicts the pairs of a run of `to` processes from those of a run of `from` processes with this structure.
///
/// In a grid: the same offsets in a grid of `to` processes, with the messages of the corresponding place. On a curve: partners that are
/// near everywhere stay as near. A far pair becomes the pairs of its pieces, which are parallel or mirrored, as the pairs around it are.
std::vector<Pair> scale(const std::vector<Pair>& pairs, const Structure& structure, uint32_t from, uint32_t to);

}  // namespace starling::analysis
