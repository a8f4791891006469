// Attributes that Fortran sets: C gets the address of the value (MPI 5.0 section 19.3.7), so each has a place of its own.
#pragma once

#include "mpi.h"

namespace starling::compat {

/// A place with `value`, which the library keeps as the attribute. Any thread.
void* attribute_boxed(MPI_Aint value);

/// The value of an attribute: what is in such a place, else the address that C has set. `last`: the place is given back.
MPI_Aint attribute_unboxed(void* attribute, bool last);

}  // namespace starling::compat
