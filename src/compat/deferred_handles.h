// Where handles go that MPI_Comm_idup makes later: the library writes what is here, and tells.
#pragma once

#include "compat/convert.h"

namespace starling::compat {

/// A place for the library's handle; what comes there is given to `write` with `place`.
MPI_Comm* make_later(void* place, void (*write)(MPI_Comm comm, void* place));

/// The same for a place of the program's, of either language. Null for null.
template <class Place>
MPI_Comm* make_later(Place* place) {
    if (!place) return nullptr;
    put(MPI_COMM_NULL, place);
    return make_later(place, [](MPI_Comm comm, void* to) { put(comm, static_cast<Place*>(to)); });
}

/// Foreign::comm_made.
void comm_made(MPI_Comm* storage);

}  // namespace starling::compat
