// Data representations that the program registers (MPI 5.0 section 14.5.3).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Register_datarep(const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                     MPI_Datarep_conversion_function* write_conversion_fn, MPI_Datarep_extent_function* dtype_file_extent_fn,
                     void* extra_state);
int Register_datarep_c(const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                       MPI_Datarep_conversion_function_c* write_conversion_fn,
                       MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state);

}  // namespace starling::mpi
