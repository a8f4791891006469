// Storage for handles that the library writes after a call has returned, as MPI_Comm_idup does. The library writes its handle to this
// storage and calls comm_made(), which converts it for the program.
#pragma once

#include "compat/convert.h"

namespace starling::compat {

/// Returns a variable for the library's handle. When the library has stored the handle, `write` is called with it and `place`.
MPI_Comm* defer_handle(void* place, void (*write)(MPI_Comm comm, void* place));

/// Returns a variable in which the library stores a handle. The handle is then converted and stored in `place`, the program's variable in C
/// or Fortran. Returns null if `place` is null.
template <class Place>
MPI_Comm* defer_handle(Place* place) {
    if (!place) return nullptr;
    put(MPI_COMM_NULL, place);
    return defer_handle(place, [](MPI_Comm comm, void* to) { put(comm, static_cast<Place*>(to)); });
}

/// Implements Foreign::comm_made: converts a deferred handle and stores it for the program.
void comm_made(MPI_Comm* storage);

}  // namespace starling::compat
