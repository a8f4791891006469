// Explicit packing (MPI 5.0 section 5.2) and the external32 representation.
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Pack(const void* inbuf, int incount, MPI_Datatype datatype, void* outbuf, int outsize, int* position, MPI_Comm comm);
int Pack_c(const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf, MPI_Count outsize, MPI_Count* position,
           MPI_Comm comm);
int Unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount, MPI_Datatype datatype, MPI_Comm comm);
int Unpack_c(const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf, MPI_Count outcount, MPI_Datatype datatype,
             MPI_Comm comm);
int Pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, CountOut size);

int Pack_external(const char* datarep, const void* inbuf, MPI_Count incount, MPI_Datatype datatype, void* outbuf,
                  MPI_Count outsize, MPI_Count* position);
int Unpack_external(const char* datarep, const void* inbuf, MPI_Count insize, MPI_Count* position, void* outbuf,
                    MPI_Count outcount, MPI_Datatype datatype);
int Pack_external_size(const char* datarep, MPI_Count incount, MPI_Datatype datatype, MPI_Count* size);

}  // namespace starling::mpi
