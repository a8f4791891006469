// The result of MPI_Type_get_contents: a constructor's arguments, sorted into integers, addresses and large counts.
#pragma once

#include <cstdint>
#include <vector>

#include "datatype/recipe.h"

namespace starling::datatype {

struct Contents {
    std::vector<int> integers;
    std::vector<int64_t> addresses;
    std::vector<int64_t> large_counts;
};

/// Sorts the arguments by the types of the constructor's parameters: with `large`, counts and displacements are large counts, else integers
/// and addresses. Returns false if a number does not fit in an int.
bool sort_contents(const Recipe& recipe, bool large, Contents& out);

}  // namespace starling::datatype
