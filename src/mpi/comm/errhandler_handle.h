// Error handlers as arguments and results of MPI functions.
#pragma once

#include "comm/errhandler.h"
#include "mpi.h"

namespace starling::mpi {

/// The handler behind a handle if it may be set on such an object; nullptr with failure_text() otherwise
/// (MPI_ERR_ERRHANDLER).
comm::Errhandler* usable_errhandler(MPI_Errhandler handle, comm::HandlerKind kind);

/// A handle for the application, which frees it with MPI_Errhandler_free, of what is set on an object.
MPI_Errhandler hand_out(comm::Errhandler* const& place);

}  // namespace starling::mpi
