// Recursive halving and doubling of a vector over a power of two of ranks: the two halves of Rabenseifner's reductions. Each rank beyond
// the power of two is folded: it first sends its vector to a neighbor, which sends it the result at the end.
#pragma once

#include <cstdint>
#include <vector>

#include "collective/core/blocks.h"
#include "collective/core/buffers.h"
#include "collective/core/task.h"
#include "collective/core/view.h"

namespace starling::collective {

/// The core ranks, a power of two of ranks that take part after folding: the odd ones of the first 2 · rest ranks, and all after these.
struct Halving {
    int power;  ///< number of core ranks: the largest power of two not above n
    int rest;   ///< number of ranks beyond the power of two: n - power
    int core;   ///< this rank's number among the core ranks; -1: folded into its right neighbor

    explicit Halving(const View& v) : power(floor_power_of_two(v.n)), rest(v.n - power) {
        if (v.me < 2 * rest)
            core = v.me % 2 == 1 ? v.me / 2 : -1;
        else
            core = v.me - rest;
    }
    int rank_of(int number) const { return number < rest ? 2 * number + 1 : number + rest; }
};

/// Returns where the pieces of core ranks 0 … pieces-1 begin in a vector of `count` elements, and its end.
std::vector<int64_t> equal_offsets(int64_t count, int pieces);

/// Folds, then halves: core rank i ends with the reduction of elements offsets[i] … offsets[i + 1] in
/// `value`. The rest of `value` and `operand` (both of the full count, offsets[power]) is scratch. Needs a
/// commutative operation.
Task halve(View v, Halving halving, void* value, void* operand, const int64_t* offsets, const Datatype& type, const Op& op);

/// Recursive doubling, the inverse of halve(): every rank ends with all pieces in `value`.
Task unhalve(View v, Halving halving, void* value, const int64_t* offsets, const Datatype& type);

}  // namespace starling::collective
