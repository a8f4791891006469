// Calls by which a program marks the phases of its communication (MPI 5.0 section 15.2.4, docs/plan.md).
#pragma once

#include "mpi.h"

namespace starling::mpi {

/// Level 0 switches the program's marks off, 1 and 2 switch them on; from 3 on, the phase "pcontrol <level>" begins. Negative levels have
/// no effect here. Does nothing while MPI is not running.
int Pcontrol(int level);
/// MPIX_Phase_begin: ends the current phase and begins the phase `name`. Local. Errors are raised on `comm`.
int Phase_begin(MPI_Comm comm, const char* name);

}  // namespace starling::mpi
