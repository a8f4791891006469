// Conversion between error handlers and their handles, for the arguments and results of MPI functions.
#pragma once

#include "comm/errhandler.h"
#include "mpi.h"

namespace starling::mpi {

/// Returns the handler behind a handle if it may be set on an object of this kind; otherwise nullptr with failure_text()
/// (MPI_ERR_ERRHANDLER).
comm::Errhandler* usable_errhandler(MPI_Errhandler handle, comm::HandlerKind kind);

/// Returns a handle of the handler stored in `place`; the application frees it with MPI_Errhandler_free.
MPI_Errhandler make_handle(comm::Errhandler* const& place);

}  // namespace starling::mpi
