// Fault tolerance of windows: revocation and known failures (MPIX_, docs/fault-tolerance.md).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Win_revoke(MPI_Win win);
int Win_is_revoked(MPI_Win win, int* flag);
int Win_get_failed(MPI_Win win, MPI_Group* failedgrp);

}  // namespace starling::mpi
