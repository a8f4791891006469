// Storage for the attributes that Fortran sets. C gets the address of the value (MPI 5.0 section 19.3.7), so each value gets its own
// memory.
#pragma once

#include "mpi.h"

namespace starling::compat {

/// Allocates memory with `value` and returns its address, which the library keeps as the attribute. Thread-safe.
void* attribute_boxed(MPI_Aint value);

/// Returns the value of an attribute: the stored value of one that Fortran has set, otherwise the address that C has set. With `last` the
/// memory is freed.
MPI_Aint attribute_unboxed(void* attribute, bool last);

}  // namespace starling::compat
