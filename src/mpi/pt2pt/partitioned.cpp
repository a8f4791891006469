#include "mpi/pt2pt/partitioned.h"

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "mpi/completion/request_handle.h"
#include "mpi/pt2pt/message_check.h"
#include "mpi/pt2pt/partitions.h"
#include "progress/engine.h"

namespace starling::mpi {

using progress::Request;

namespace {

template <class T>
RequestPool<T>& pool_of();

template <class T>
constexpr progress::RequestClass kClass{
    .dispose =
        [](Request& r) {
            auto& request = static_cast<T&>(r);
            if constexpr (requires { request.leave(*comm_of(r)); }) request.leave(*comm_of(r));
            pool_of<T>().destroy(request);
        },
    .start =
        [](Request& r) {
            static_cast<T&>(r).begin();
            return MPI_SUCCESS;
        },
    .report_wait = [](const Request& r, progress::WaitReporter& teller) { static_cast<const T&>(r).report_wait(teller); }};

STARLING_STATE NoDestroy<RequestPool<PartitionedSend>> partitioned_sends_storage;
STARLING_STATE NoDestroy<RequestPool<PartitionedReceive>> partitioned_receives_storage;
template <>
RequestPool<PartitionedSend>& pool_of<PartitionedSend>() {
    return partitioned_sends_storage.value;
}
template <>
RequestPool<PartitionedReceive>& pool_of<PartitionedReceive>() {
    return partitioned_receives_storage.value;
}

/// Returns the partitioned send or receive behind a handle. Raises an error and returns null if the handle is of another kind.
template <class T>
T* find(MPI_Request handle, const char* what, int& error) {
    Request* const request = request_from_handle(handle);
    if (request && request->operations == &kClass<T>) return static_cast<T*>(request);
    error = request ? raise(comm_of(*request), fail(MPI_ERR_REQUEST, "the request is not that of a partitioned %s", what))
                    : bad_handle(nullptr, MPI_ERR_REQUEST, "request");
    return nullptr;
}

/// Checks the arguments that partitioned sends and receives have in common. Sets `error` to the raised code or MPI_SUCCESS.
Partitioned check(comm::Comm* comm, const void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int rank,
                  int tag, MPI_Info info, const MPI_Request* request, int& error) {
    const datatype::Datatype* type = datatype::from_handle(datatype);
    MPI_Count total = 0;
    if (partitions < 0)
        error = raise(comm, fail(MPI_ERR_ARG, "the number of partitions, %d, is negative", partitions));
    else if (count < 0 || __builtin_mul_overflow(count, MPI_Count{partitions}, &total))
        error = bad_count(comm, count);
    else if (!(error = check_side(comm, rank, datatype, buffer, total)) && info != MPI_INFO_NULL && !comm::from_handle(info))
        error = bad_handle(comm, MPI_ERR_INFO, "info object");
    else if (!error && !request)
        error = null_argument(comm, "request");
    if (!type) type = &datatype::predefined(MPI_BYTE);  // MPI_PROC_NULL without a type: no data will be transferred
    return {const_cast<void*>(buffer), partitions, count, type, rank, tag};
}

template <class T>
int make(comm::Comm* comm, const Partitioned& what, MPI_Request* out) {
    T* const request = pool_of<T>().create(comm, kClass<T>);
    request->persistent = true;
    request->active = false;
    request->prepare(*comm, what);
    *out = request_to_handle(request);
    return MPI_SUCCESS;
}

/// Creates a send or receive request. Partitioned receives have no wildcards, so both are checked like a send.
template <class Request>
int init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int partner, int tag, MPI_Comm handle,
         MPI_Info info, MPI_Request* request) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_send(comm, handle, partner, tag)) return error;
    int error = MPI_SUCCESS;
    const Partitioned what = check(comm, buf, partitions, count, datatype, partner, tag, info, request, error);
    return error ? error : make<Request>(comm, what, request);
}

}  // namespace

int Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm handle,
               MPI_Info info, MPI_Request* request) {
    return init<PartitionedSend>(buf, partitions, count, datatype, dest, tag, handle, info, request);
}

int Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm handle,
               MPI_Info info, MPI_Request* request) {
    return init<PartitionedReceive>(buf, partitions, count, datatype, source, tag, handle, info, request);
}

int Pready(int partition, MPI_Request request) { return Pready_range(partition, partition, request); }

int Pready_range(int low, int high, MPI_Request handle) {
    Lock lock;
    int error = MPI_SUCCESS;
    auto* const send = find<PartitionedSend>(handle, "send", error);
    if (!send) return error;
    if (low > high)
        return raise(comm_of(*send), fail(MPI_ERR_ARG,
                                          "the range of partitions from %d to %d is empty; the first number must "
                                          "not be greater than the second",
                                          low, high));
    for (int partition = low; partition <= high && !error; ++partition) error = send->ready(partition);
    return raise(comm_of(*send), error);
}

int Pready_list(int length, const int array_of_partitions[], MPI_Request handle) {
    Lock lock;
    int error = MPI_SUCCESS;
    auto* const send = find<PartitionedSend>(handle, "send", error);
    if (!send) return error;
    if (length < 0) return bad_count(comm_of(*send), length);
    if (length > 0 && !array_of_partitions) return null_argument(comm_of(*send), "array_of_partitions");
    for (int i = 0; i < length && !error; ++i) error = send->ready(array_of_partitions[i]);
    return raise(comm_of(*send), error);
}

int Parrived(MPI_Request handle, int partition, int* flag) {
    Lock lock;
    int error = MPI_SUCCESS;
    if (!flag) return null_argument(nullptr, "flag");
    *flag = 1;
    if (handle == MPI_REQUEST_NULL) return MPI_SUCCESS;
    auto* const receive = find<PartitionedReceive>(handle, "receive", error);
    if (!receive) return error;
    if (partition < 0 || partition >= receive->partitions())
        return raise(comm_of(*receive), fail(MPI_ERR_ARG, "partition %d is not one of the %d partitions of this receive",
                                             partition, receive->partitions()));
    *flag = receive->arrived(partition);
    if (*flag) return MPI_SUCCESS;
    progress::test();
    // Another thread may have freed the request during the call of test().
    auto* const still = find<PartitionedReceive>(handle, "receive", error);
    *flag = !still || still->arrived(partition);
    return error;
}

}  // namespace starling::mpi
