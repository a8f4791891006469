// What a program says about itself: the phases of its communication (MPI 5.0 section 15.2.4, docs/plan.md).
#pragma once

#include "mpi.h"

namespace starling::mpi {

/// 0: marks count no more; 1 and 2: they do again; from 3 on: phase "pcontrol <level>" begins. Others say nothing to us. Does
/// nothing while MPI doesn't run.
int Pcontrol(int level);
/// MPIX_Phase_begin: a phase of that name begins, and the one that is going on ends. Local. `comm` says whose errors these are.
int Phase_begin(MPI_Comm comm, const char* name);

}  // namespace starling::mpi
