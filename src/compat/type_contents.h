// Conversion of the results of MPI_Type_get_contents to the program's constants.
#pragma once

#include "compat/convert.h"

namespace starling::compat {

/// Converts the integers of a type's contents that are constants (MPI 5.0 section 5.1.13): the orders of arrays, and the distributions of a
/// darray.
template <class Integer>
void convert_contents(int combiner, Integer* integers) {
    const auto ndims = combiner == MPI_COMBINER_SUBARRAY ? integers[0] : combiner == MPI_COMBINER_DARRAY ? integers[2] : 0;
    if (combiner == MPI_COMBINER_SUBARRAY) integers[3 * ndims + 1] = abi::order_out(static_cast<int>(integers[3 * ndims + 1]));
    if (combiner != MPI_COMBINER_DARRAY) return;
    integers[4 * ndims + 3] = abi::order_out(static_cast<int>(integers[4 * ndims + 3]));
    for (auto i = ndims + 3; i < 2 * ndims + 3; ++i) integers[i] = abi::distribution_out(static_cast<int>(integers[i]));
    for (auto i = 2 * ndims + 3; i < 3 * ndims + 3; ++i)
        integers[i] = abi::distribution_argument_out(static_cast<int>(integers[i]));
}

}  // namespace starling::compat
