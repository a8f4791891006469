// Where handles go that MPI_Comm_idup makes later: the library writes what is here, and tells.
#pragma once

#include "compat/convert.h"

namespace starling::compat {

/// A place for the library's handle; what comes there goes to `place` as the program's own. Null for null.
MPI_Comm* make_later(abi::Comm* place);

/// Foreign::comm_made.
void comm_made(MPI_Comm* storage);

}  // namespace starling::compat
