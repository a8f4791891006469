#include "mpi/coll/collective_persistent.h"

#include "mpi/coll/neighborhood_tasks.h"

namespace starling::mpi {

int Barrier_init(MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(barrier_task(call), info, request);
}

int Bcast_init(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Info info,
               MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(bcast_task(call, buffer, count, datatype, root), info, request);
}

int Gather_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(gather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}, root), info, request);
}

int Gatherv_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                 Counts displs, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(gather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}, root), info,
                        request);
}

int Scatter_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                 MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(scatter_task(call, {sendbuf, sendcount, sendtype}, recvbuf, recvcount, recvtype, root), info, request);
}

int Scatterv_init(const void* sendbuf, Counts sendcounts, Counts displs, MPI_Datatype sendtype, void* recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(scatter_task(call, {sendbuf, sendcounts, displs, sendtype}, recvbuf, recvcount, recvtype, root), info,
                        request);
}

int Allgather_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                   MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}), info, request);
}

int Allgatherv_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                    Counts displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}), info,
                        request);
}

int Alltoall_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                  MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(alltoall_task(call, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}), info, request);
}

int Alltoallv_init(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                   Counts recvcounts, Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                   MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(alltoall_task(call, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype}),
                        info, request);
}

int Alltoallw_init(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
                   Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm, MPI_Info info,
                   MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(alltoallw_task(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes),
                        info, request);
}

int Reduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
                MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(reduce_task(call, sendbuf, recvbuf, count, datatype, op, root), info, request);
}

int Allreduce_init(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                   MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(allreduce_task(call, sendbuf, recvbuf, count, datatype, op), info, request);
}

int Reduce_scatter_block_init(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                              MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(reduce_scatter_block_task(call, sendbuf, recvbuf, recvcount, datatype, op), info, request);
}

int Reduce_scatter_init(const void* sendbuf, void* recvbuf, Counts recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                        MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(reduce_scatter_task(call, sendbuf, recvbuf, recvcounts, datatype, op), info, request);
}

int Scan_init(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
              MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(scan_task(call, sendbuf, recvbuf, count, datatype, op, false), info, request);
}

int Exscan_init(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
                MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(scan_task(call, sendbuf, recvbuf, count, datatype, op, true), info, request);
}

int Neighbor_allgather_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                            MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(neighbor_allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}), info,
                        request);
}

int Neighbor_allgatherv_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
                             Counts displs, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(neighbor_allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}),
                        info, request);
}

int Neighbor_alltoall_init(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
                           MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(neighbor_alltoall_task(call, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}), info,
                        request);
}

int Neighbor_alltoallv_init(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf,
                            Counts recvcounts, Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm, MPI_Info info,
                            MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(
        neighbor_alltoall_task(call, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype}), info,
        request);
}

int Neighbor_alltoallw_init(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[],
                            void* recvbuf, Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                            MPI_Info info, MPI_Request* request) {
    CollectiveCall call(comm, CollectiveCall::Persistent{});
    call.request(request);
    return call.prepare(
        neighbor_alltoallw_task(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes), info,
        request);
}

}  // namespace starling::mpi
