#include "mpi/coll/neighborhood.h"

#include "mpi/coll/neighborhood_tasks.h"

namespace starling::mpi {

int Neighbor_allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(neighbor_allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}));
}

int Neighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                        Counts displs, MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(neighbor_allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}));
}

int Neighbor_alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                      MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(neighbor_alltoall_task(call, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}));
}

int Neighbor_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                       Counts recvcounts, Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(
        neighbor_alltoall_task(call, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype}));
}

int Neighbor_alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                       Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(
        neighbor_alltoallw_task(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes));
}

int Ineighbor_allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                        MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(neighbor_allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}), request);
}

int Ineighbor_allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                         Counts displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(neighbor_allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}),
                      request);
}

int Ineighbor_alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                       MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(neighbor_alltoall_task(call, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}), request);
}

int Ineighbor_alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                        Counts recvcounts, Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(
        neighbor_alltoall_task(call, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype}),
        request);
}

int Ineighbor_alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                        Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                        MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(
        neighbor_alltoallw_task(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes),
        request);
}

}  // namespace starling::mpi
