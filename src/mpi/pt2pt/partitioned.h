// Partitioned communication (MPI 5.0 chapter 4).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Info info, MPI_Request* request);
int Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Info info, MPI_Request* request);
int Pready(int partition, MPI_Request request);
int Pready_range(int partition_low, int partition_high, MPI_Request request);
int Pready_list(int length, const int array_of_partitions[], MPI_Request request);
int Parrived(MPI_Request request, int partition, int* flag);

}  // namespace starling::mpi
