// Info objects (MPI 5.0 chapter 10). All may be called before MPI_Init and after MPI_Finalize.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Info_create(MPI_Info* info);
int Info_create_env(int argc, char* argv[], MPI_Info* info);
int Info_dup(MPI_Info info, MPI_Info* newinfo);
int Info_free(MPI_Info* info);
int Info_set(MPI_Info info, const char* key, const char* value);
int Info_get(MPI_Info info, const char* key, int valuelen, char* value, int* flag);
int Info_get_string(MPI_Info info, const char* key, int* buflen, char* value, int* flag);
int Info_get_valuelen(MPI_Info info, const char* key, int* valuelen, int* flag);
int Info_get_nkeys(MPI_Info info, int* nkeys);
int Info_get_nthkey(MPI_Info info, int n, char* key);
int Info_delete(MPI_Info info, const char* key);
int Info_toint(MPI_Info info);
MPI_Info Info_fromint(int info);

}  // namespace starling::mpi
