// Versions and the ABI's own functions (MPI 5.0 chapter 20). All may be called before MPI_Init and after
// MPI_Finalize.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Get_version(int* version, int* subversion);
int Get_library_version(char* version, int* resultlen);
int Abi_get_version(int* abi_major, int* abi_minor);
int Abi_get_info(MPI_Info* info);
int Abi_get_fortran_info(MPI_Info* info);
int Abi_set_fortran_info(MPI_Info info);
int Abi_get_fortran_booleans(int logical_size, void* logical_true, void* logical_false, int* is_set);
int Abi_set_fortran_booleans(int logical_size, void* logical_true, void* logical_false);

}  // namespace starling::mpi
