// Fault tolerance of files: revocation and known failures (MPIX_, docs/fault-tolerance.md).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int File_revoke(MPI_File fh);
int File_is_revoked(MPI_File fh, int* flag);
int File_get_failed(MPI_File fh, MPI_Group* failedgrp);

}  // namespace starling::mpi
