#include "mpi/coll/collective_nonblocking.h"

#include "mpi/coll/collective_tasks.h"

namespace starling::mpi {

int Ibarrier(MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(barrier_task(call), request);
}

int Ibcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(bcast_task(call, buffer, count, datatype, root), request);
}

int Igather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(gather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}, root), request);
}

int Igatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts displs,
             MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(gather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}, root), request);
}

int Iscatter(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
             MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(scatter_task(call, {sendbuf, sendcount, sendtype}, recvbuf, recvcount, recvtype, root), request);
}

int Iscatterv(const void* sendbuf, Counts sendcounts, Counts displs, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
              MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(scatter_task(call, {sendbuf, sendcounts, displs, sendtype}, recvbuf, recvcount, recvtype, root), request);
}

int Iallgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
               MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}), request);
}

int Iallgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                Counts displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}), request);
}

int Ialltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
              MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(alltoall_task(call, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}), request);
}

int Ialltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
               Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(alltoall_task(call, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype}),
                      request);
}

int Ialltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
               Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(alltoallw_task(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes),
                      request);
}

int Ireduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
            MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(reduce_task(call, sendbuf, recvbuf, count, datatype, op, root), request);
}

int Iallreduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
               MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(allreduce_task(call, sendbuf, recvbuf, count, datatype, op), request);
}

int Ireduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(reduce_scatter_block_task(call, sendbuf, recvbuf, recvcount, datatype, op), request);
}

int Ireduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                    MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(reduce_scatter_task(call, sendbuf, recvbuf, recvcounts, datatype, op), request);
}

int Iscan(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
          MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(scan_task(call, sendbuf, recvbuf, count, datatype, op, false), request);
}

int Iexscan(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
            MPI_Request* request) {
    CollectiveCall call(comm, false);
    call.request(request);
    return call.start(scan_task(call, sendbuf, recvbuf, count, datatype, op, true), request);
}

}  // namespace starling::mpi
