// The public fields of a status by call (MPI 5.0 section 3.2.5).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Status_get_source(const MPI_Status* status, int* source);
int Status_get_tag(const MPI_Status* status, int* tag);
int Status_get_error(const MPI_Status* status, int* error);
int Status_set_source(MPI_Status* status, int source);
int Status_set_tag(MPI_Status* status, int tag);
int Status_set_error(MPI_Status* status, int error);

}  // namespace starling::mpi
