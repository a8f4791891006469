#include "mpi/pt2pt/persistent.h"

#include "base/no_destroy.h"
#include "base/state.h"
#include "message/point_to_point.h"
#include "message/status.h"
#include "message/wait_report.h"
#include "mpi/completion/request_handle.h"
#include "mpi/pt2pt/buffered.h"
#include "mpi/pt2pt/message_check.h"

namespace starling::mpi {

using message::SendMode;
using progress::Request;

namespace {

/// The arguments of a persistent request, which every start uses.
struct PersistentOperation {
    void* buffer = nullptr;
    MPI_Count count = 0;
    const datatype::Datatype* type = nullptr;  ///< the request holds a reference to the type
    int rank = 0;
    int tag = 0;
    bool buffered = false;
    SendMode mode = SendMode::standard;
};
struct PersistentSend : message::SendRequest {
    PersistentOperation plan;
};
struct PersistentReceive : message::ReceiveRequest {
    PersistentOperation plan;
};
STARLING_STATE NoDestroy<RequestPool<PersistentSend>> persistent_sends_storage;
constinit auto& persistent_sends = persistent_sends_storage.value;
STARLING_STATE NoDestroy<RequestPool<PersistentReceive>> persistent_receives_storage;
constinit auto& persistent_receives = persistent_receives_storage.value;

int start_send(Request& r) {
    auto& request = static_cast<PersistentSend&>(r);
    const PersistentOperation& plan = request.plan;
    comm::Comm& comm = *comm_of(request);
    request.outcome = {};
    if (plan.rank == MPI_PROC_NULL) {
        request.done = true;
        return MPI_SUCCESS;
    }
    if (plan.buffered) {
        request.done = true;
        return send_buffered(comm, plan.buffer, plan.count, *plan.type, plan.rank, plan.tag);
    }
    message::start_send(request, comm.point_to_point, plan.buffer, plan.count, *plan.type, plan.rank, plan.tag, plan.mode);
    return MPI_SUCCESS;
}

int start_receive(Request& r) {
    auto& request = static_cast<PersistentReceive&>(r);
    const PersistentOperation& plan = request.plan;
    if (plan.rank == MPI_PROC_NULL) {
        request.outcome = message::proc_null_outcome();
        request.done = true;
        return MPI_SUCCESS;
    }
    message::start_receive(request, comm_of(request)->point_to_point, plan.buffer, plan.count, *plan.type, plan.rank, plan.tag);
    return MPI_SUCCESS;
}

template <class T>
void dispose(RequestPool<T>& pool, Request& r) {
    auto& request = static_cast<T&>(r);
    datatype::release(*request.plan.type);
    pool.destroy(request);
}

constexpr progress::RequestClass kPersistentSend{
    .dispose = [](Request& r) { dispose(persistent_sends, r); },
    .start = start_send,
    .cancel = [](Request& r) { return message::abandon(static_cast<PersistentSend&>(r)); },
    .report_wait = [](const Request& r,
                      progress::WaitReporter& to) { message::report_send(static_cast<const PersistentSend&>(r), to); }};
constexpr progress::RequestClass kPersistentReceive{
    .dispose = [](Request& r) { dispose(persistent_receives, r); },
    .start = start_receive,
    .cancel = [](Request& r) { return message::cancel_programs_receive(static_cast<PersistentReceive&>(r)); },
    .report_wait = [](const Request& r,
                      progress::WaitReporter& to) { message::report_receive(static_cast<const PersistentReceive&>(r), to); }};

template <class T>
MPI_Request make(RequestPool<T>& pool, const progress::RequestClass& operations, comm::Comm* comm,
                 const PersistentOperation& plan) {
    T* request = pool.create(comm, operations);
    datatype::retain(*plan.type);
    request->plan = plan;
    request->persistent = true;
    request->active = false;
    return request_to_handle(request);
}

int send_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm handle, SendMode mode,
              bool buffered, MPI_Request* out) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_send(comm, handle, dest, tag)) return error;
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_data(comm, type, datatype, buf, count)) return error;
    if (!out) return null_argument(comm, "request");
    *out = make(persistent_sends, kPersistentSend, comm, {const_cast<void*>(buf), count, type, dest, tag, buffered, mode});
    return MPI_SUCCESS;
}

}  // namespace

int Send_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
    return send_init(buf, count, datatype, dest, tag, comm, SendMode::standard, false, request);
}

int Ssend_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
    return send_init(buf, count, datatype, dest, tag, comm, SendMode::synchronous, false, request);
}

int Rsend_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
    return send_init(buf, count, datatype, dest, tag, comm, SendMode::standard, false, request);
}

int Bsend_init(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request* request) {
    return send_init(buf, count, datatype, dest, tag, comm, SendMode::standard, true, request);
}

int Recv_init(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm handle, MPI_Request* out) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_receive(comm, handle, source, tag)) return error;
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_side(comm, source, datatype, buf, count)) return error;
    if (!out) return null_argument(comm, "request");
    if (!type) type = &datatype::predefined(MPI_BYTE);  // MPI_PROC_NULL without a type: no data will be received
    *out = make(persistent_receives, kPersistentReceive, comm, {buf, count, type, source, tag});
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
