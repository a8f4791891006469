// The initial error handler of a process: predefined communicators have it at first, and it receives errors that no object receives, such
// as those before MPI_Init and after MPI_Finalize (MPI 5.0 sections 9.3 and 11.8.4). The launcher chooses it for the processes that it starts.
#pragma once

#include "comm/errhandler.h"

namespace starling::comm {

/// Returns the handler that the variable STARLING_INITIAL_ERRHANDLER names; by default MPI_ERRORS_ARE_FATAL. Before MPI_Init only the
/// environment counts, because no configuration file has been read.
Errhandler* initial_errhandler();

/// Returns the handler's name as the value of the info key mpi_initial_errhandler, or nullptr if neither launcher nor user has chosen one.
const char* initial_errhandler_name();

}  // namespace starling::comm
