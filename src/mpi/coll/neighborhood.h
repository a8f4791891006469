// Neighborhood collectives (MPI 5.0 sections 8.6 to 8.8), blocking and not.
#pragma once

#include "mpi.h"
#include "mpi/common/counts.h"

namespace starling::mpi {

int Neighbor_allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm);
int Neighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                        Counts displs, MPI_Datatype recvtype, MPI_Comm comm);
int Neighbor_alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm);
int Neighbor_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                       Counts recvcounts, Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm);
int Neighbor_alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                       Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm);

int Ineighbor_allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request);
int Ineighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                         Counts displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request);
int Ineighbor_alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request);
int Ineighbor_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                        Counts recvcounts, Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request);
int Ineighbor_alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                        Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request* request);

}  // namespace starling::mpi
