// Predicts the partners of processes for another number of processes, from the structure of the neighborhoods, not from rank numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pairs.h"

namespace starling::analysis {

/// The structure of the pairs of a run.
struct Structure {
    /// Dimensions of the process grid; in the first dimension, neighbors have consecutive ranks. Empty: no grid fits, so the ranks are
    /// treated as consecutive pieces of a curve through the application's domain.
    std::vector<uint32_t> grid;
    /// Returns text such as "4 x 4 grid" or "curve".
    std::string name() const;
};

/// Returns the grid in which the largest share of the messages, at least 0.9, goes to partners at a few offsets that are the same for all
/// ranks. Among equal grids, returns the one with the smallest offsets.
Structure structure_of(const std::vector<Pair>& pairs, uint32_t size);

/// Predicts the pairs of a run of `to` processes from those of a run of `from` processes with this structure.
///
/// In a grid, partners keep their offsets, with the messages of the corresponding rank. On a curve, pairs of near ranks keep their distance
/// if most ranks have such a pair. Any other pair is split into pairs of the ranks that replace its two ranks. These are paired in equal or
/// opposite order, depending on the pairs beside it.
std::vector<Pair> scale(const std::vector<Pair>& pairs, const Structure& structure, uint32_t from, uint32_t to);

}  // namespace starling::analysis
