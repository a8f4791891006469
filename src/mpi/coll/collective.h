// Collective communication (MPI 5.0 chapter 6), blocking. Those of neighbours are in neighborhood.h.
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Barrier(MPI_Comm comm);
int Bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm);
int Gather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
           MPI_Datatype recvtype, int root, MPI_Comm comm);
int Gatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts displs,
            MPI_Datatype recvtype, int root, MPI_Comm comm);
int Scatter(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm);
int Scatterv(const void* sendbuf, Counts sendcounts, Counts displs, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
             MPI_Datatype recvtype, int root, MPI_Comm comm);
int Allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
              MPI_Datatype recvtype, MPI_Comm comm);
int Allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts displs,
               MPI_Datatype recvtype, MPI_Comm comm);
int Alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
             MPI_Datatype recvtype, MPI_Comm comm);
int Alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
              Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm);
int Alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
              Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm);
int Reduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm);
int Allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int Reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm);
int Reduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int Scan(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);
int Exscan(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm);

}  // namespace starling::mpi
