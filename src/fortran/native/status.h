// Statuses need no conversion: Fortran's are those of C. Included by compat/convert.h.
#pragma once

namespace starling::compat::abi {

inline MPI_Status status_in(const Status& status) { return status; }
inline void status_out(const MPI_Status& from, Status& status) { status = from; }

}  // namespace starling::compat::abi
