// Clock, names, memory and address arithmetic (MPI 5.0 chapters 9 and 4.1.5). Safe to call at any time,
// from any thread.
#pragma once

#include "mpi.h"

namespace starling::mpi {

double Wtime();
double Wtick();
int Get_processor_name(char* name, int* resultlen);
int Alloc_mem(MPI_Aint size, MPI_Info info, void* baseptr);
int Free_mem(void* base);
MPI_Aint Aint_add(MPI_Aint base, MPI_Aint disp);
MPI_Aint Aint_diff(MPI_Aint addr1, MPI_Aint addr2);
/// Creates an info object for the hardware resources that Starling has names for. There are none yet, so it is empty.
int Get_hw_resource_info(MPI_Info* hw_info);

}  // namespace starling::mpi
