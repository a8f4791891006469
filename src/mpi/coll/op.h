// Reduction operations (MPI 5.0 section 6.9).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Op_create(MPI_User_function* user_fn, int commute, MPI_Op* op);
int Op_create_c(MPI_User_function_c* user_fn, int commute, MPI_Op* op);
int Op_free(MPI_Op* op);
int Op_commutative(MPI_Op op, int* commute);
int Op_toint(MPI_Op op);
MPI_Op Op_fromint(int op);
int Reduce_local(const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op);

}  // namespace starling::mpi
