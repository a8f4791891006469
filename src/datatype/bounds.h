// Computes the size and the bounds of a new type.
#pragma once

#include "datatype/recipe.h"

namespace starling::datatype {

/// Computes size, bounds, alignment and element count of `type` from its recipe, as MPI 5.0 section 5.1.6 defines them. Explicit bounds of
/// any constituent outrank the data's bounds; otherwise the extent is rounded up to the strictest alignment. Returns false if a number does
/// not fit in 64 bits.
bool set_bounds(Datatype& type, const Recipe& recipe);

}  // namespace starling::datatype
