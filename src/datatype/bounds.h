// Size and bounds of a type in the making.
#pragma once

#include "datatype/recipe.h"

namespace starling::datatype {

/// Works out size, bounds, alignment and element count of `type` from its recipe, as MPI 5.0 section 5.1.6
/// defines them: explicit bounds of any constituent outrank the data's, and otherwise the extent is rounded
/// up to the strictest alignment. False if anything does not fit in 64 bits.
bool set_bounds(Datatype& type, const Recipe& recipe);

}  // namespace starling::datatype
