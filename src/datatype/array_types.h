// Subarrays and distributed arrays (MPI 5.0 sections 5.1.3 and 5.1.4), expressed by strided types.
#pragma once

#include "datatype/recipe.h"

namespace starling::datatype {

/// Check a recipe's arguments and set its equivalent type.
int make_subarray(Recipe& recipe);
int make_darray(Recipe& recipe);

}  // namespace starling::datatype
