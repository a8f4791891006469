#include "mpi/coll/collective.h"

#include "mpi/coll/collective_tasks.h"

namespace starling::mpi {

int Barrier(MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(barrier_task(call));
}

int Bcast(void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(bcast_task(call, buffer, count, datatype, root));
}

int Gather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
           MPI_Datatype recvtype, int root, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(gather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}, root));
}

int Gatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts displs,
            MPI_Datatype recvtype, int root, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(gather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}, root));
}

int Scatter(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
            MPI_Datatype recvtype, int root, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(scatter_task(call, {sendbuf, sendcount, sendtype}, recvbuf, recvcount, recvtype, root));
}

int Scatterv(const void* sendbuf, Counts sendcounts, Counts displs, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
             MPI_Datatype recvtype, int root, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(scatter_task(call, {sendbuf, sendcounts, displs, sendtype}, recvbuf, recvcount, recvtype, root));
}

int Allgather(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
              MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcount, recvtype}));
}

int Allgatherv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts, Counts displs,
               MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(allgather_task(call, sendbuf, sendcount, sendtype, {recvbuf, recvcounts, displs, recvtype}));
}

int Alltoall(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void* recvbuf, MPI_Count recvcount,
             MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(alltoall_task(call, {sendbuf, sendcount, sendtype}, {recvbuf, recvcount, recvtype}));
}

int Alltoallv(const void* sendbuf, Counts sendcounts, Counts sdispls, MPI_Datatype sendtype, void* recvbuf, Counts recvcounts,
              Counts rdispls, MPI_Datatype recvtype, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(alltoall_task(call, {sendbuf, sendcounts, sdispls, sendtype}, {recvbuf, recvcounts, rdispls, recvtype}));
}

int Alltoallw(const void* sendbuf, Counts sendcounts, Counts sdispls, const MPI_Datatype sendtypes[], void* recvbuf,
              Counts recvcounts, Counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(alltoallw_task(call, sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes));
}

int Reduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(reduce_task(call, sendbuf, recvbuf, count, datatype, op, root));
}

int Allreduce(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(allreduce_task(call, sendbuf, recvbuf, count, datatype, op));
}

int Reduce_scatter_block(const void* sendbuf, void* recvbuf, MPI_Count recvcount, MPI_Datatype datatype, MPI_Op op,
                         MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(reduce_scatter_block_task(call, sendbuf, recvbuf, recvcount, datatype, op));
}

int Reduce_scatter(const void* sendbuf, void* recvbuf, Counts recvcounts, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(reduce_scatter_task(call, sendbuf, recvbuf, recvcounts, datatype, op));
}

int Scan(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(scan_task(call, sendbuf, recvbuf, count, datatype, op, false));
}

int Exscan(const void* sendbuf, void* recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm) {
    CollectiveCall call(comm, true);
    return call.run(scan_task(call, sendbuf, recvbuf, count, datatype, op, true));
}

}  // namespace starling::mpi
