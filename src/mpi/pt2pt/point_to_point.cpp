#include "mpi/pt2pt/point_to_point.h"

#include <memory>

#include "base/no_destroy.h"
#include "base/state.h"
#include "message/point_to_point.h"
#include "message/status.h"
#include "message/wait_report.h"
#include "mpi/pt2pt/message_check.h"
#include "mpi/pt2pt/message_handles.h"
#include "progress/engine.h"

namespace starling::mpi {

using message::ReceiveRequest;
using message::SendMode;
using message::SendRequest;

STARLING_STATE NoDestroy<RequestPool<SendRequest>> send_pool_storage;
STARLING_STATE NoDestroy<RequestPool<ReceiveRequest>> receive_pool_storage;
constinit const progress::RequestClass kSend{
    .dispose = [](progress::Request& r) { send_pool.destroy(static_cast<SendRequest&>(r)); },
    .cancel = [](progress::Request& r) { return message::abandon(static_cast<SendRequest&>(r)); },
    .report_wait = [](const progress::Request& r,
                      progress::WaitReporter& to) { message::report_send(static_cast<const SendRequest&>(r), to); }};
constinit const progress::RequestClass kReceive{
    .dispose = [](progress::Request& r) { receive_pool.destroy(static_cast<ReceiveRequest&>(r)); },
    .cancel = [](progress::Request& r) { return message::cancel_programs_receive(static_cast<ReceiveRequest&>(r)); },
    .report_wait = [](const progress::Request& r,
                      progress::WaitReporter& to) { message::report_receive(static_cast<const ReceiveRequest&>(r), to); }};
constinit const progress::WaitSite kRecvSite{.report_wait = message::report_receive};

namespace {

/// Waits for the operation of a blocking call. Holds a reference to the communicator, because other threads may free it meanwhile.
[[gnu::noinline]] int wait_for(progress::Request& request, comm::Comm* comm, MPI_Status* status,
                               const progress::WaitSite& site) {
    const comm::ReferenceGuard kept(comm);
    progress::wait(request, site);
    message::fill_status(status, request.outcome);
    return raise(comm, progress::error_of(request));
}

// Sets the request of a failed call to MPI_REQUEST_NULL, as the generated entry points of other functions do; returns `error`.
[[gnu::cold]] int no_request(MPI_Request* out, int error) {
    if (out) *out = MPI_REQUEST_NULL;
    return failed(error);
}

[[gnu::always_inline]] inline int send_now(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                                           MPI_Comm handle, SendMode mode) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_send(comm, handle, dest, tag)) [[unlikely]]
        return error;
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_data(comm, type, datatype, buf, count)) [[unlikely]]
        return error;
    if (dest == MPI_PROC_NULL) return check_no_transfer(comm);
    message::Unsent unsent;
    if (message::send_at_once(comm->point_to_point, buf, count, *type, dest, tag, mode, unsent)) [[likely]]
        return MPI_SUCCESS;
    SendRequest request;
    request.waits = true;
    message::start_unsent(request, comm->point_to_point, buf, count, *type, dest, tag, unsent);
    if (!request.done) {
        const progress::WaitSite site{.report_wait = message::report_send};
        if (threads_at_once()) [[unlikely]]
            return wait_for(request, comm, nullptr, site);
        progress::wait(request, site);
    }
    if (request.outcome.error) [[unlikely]]
        return raise(comm, progress::error_of(request));
    return MPI_SUCCESS;
}

[[gnu::always_inline]] inline int send_later(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag,
                                             MPI_Comm handle, SendMode mode, MPI_Request* out) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_send(comm, handle, dest, tag)) [[unlikely]]
        return no_request(out, error);
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_data(comm, type, datatype, buf, count)) [[unlikely]]
        return no_request(out, error);
    if (!out) [[unlikely]]
        return null_argument(comm, "request");
    // Most sends complete when they are started; they share one request handle.
    message::Unsent unsent;
    if (dest == MPI_PROC_NULL || message::send_at_once(comm->point_to_point, buf, count, *type, dest, tag, mode, unsent)) {
        *out = completed_request();
        return MPI_SUCCESS;
    }
    SendRequest* request = send_pool.create(comm, kSend);
    request->synchronous = mode == SendMode::synchronous;
    message::start_unsent(*request, comm->point_to_point, buf, count, *type, dest, tag, unsent);
    *out = request_to_handle(request);
    return MPI_SUCCESS;
}

/// MPI_Irecv from MPI_PROC_NULL: completes at once.
[[gnu::cold]] int receive_from_null(comm::Comm& comm, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Request* out) {
    if (const int error = check_side(&comm, MPI_PROC_NULL, datatype, buf, count)) return no_request(out, error);
    if (const int error = check_no_transfer(&comm)) return no_request(out, error);
    if (!out) return null_argument(&comm, "request");
    ReceiveRequest* request = receive_pool.create(&comm, kReceive);
    request->outcome = message::proc_null_outcome();
    request->done = true;
    *out = request_to_handle(request);
    return MPI_SUCCESS;
}

}  // namespace

int Send(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) noexcept try {
    return send_now(buf, count, datatype, dest, tag, comm, SendMode::standard);
} catch (const std::bad_alloc&) { return out_of_memory(); }

int Ssend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return send_now(buf, count, datatype, dest, tag, comm, SendMode::synchronous);
}

int Rsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
    return send_now(buf, count, datatype, dest, tag, comm, SendMode::standard);
}

int Isend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
          MPI_Request* request) noexcept try {
    return send_later(buf, count, datatype, dest, tag, comm, SendMode::standard, request);
} catch (const std::bad_alloc&) { return out_of_memory(); }

int Issend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
    return send_later(buf, count, datatype, dest, tag, comm, SendMode::synchronous, request);
}

int Irsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
    return send_later(buf, count, datatype, dest, tag, comm, SendMode::standard, request);
}

int Recv(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm handle, MPI_Status* status) noexcept
    try {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_receive(comm, handle, source, tag)) [[unlikely]]
        return error;
    if (source == MPI_PROC_NULL) {
        message::fill_status(status, message::proc_null_outcome());
        const int error = check_side(comm, source, datatype, buf, count);
        return error ? error : check_no_transfer(comm);
    }
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_data(comm, type, datatype, buf, count)) [[unlikely]]
        return error;
    ReceiveRequest request;
    message::start_receive(request, comm->point_to_point, buf, count, *type, source, tag);
    if (!request.done) {
        if (threads_at_once()) [[unlikely]]
            return wait_for(request, comm, status, kRecvSite);
        progress::wait(request, kRecvSite);
    }
    message::fill_status(status, request.outcome);
    if (request.outcome.error) [[unlikely]]
        return raise(comm, progress::error_of(request));
    return MPI_SUCCESS;
} catch (const std::bad_alloc&) { return out_of_memory(); }

int Irecv(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm handle, MPI_Request* out) noexcept
    try {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_receive(comm, handle, source, tag)) [[unlikely]]
        return no_request(out, error);
    if (source == MPI_PROC_NULL) [[unlikely]]
        return receive_from_null(*comm, buf, count, datatype, out);
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_data(comm, type, datatype, buf, count)) [[unlikely]]
        return no_request(out, error);
    if (!out) [[unlikely]]
        return null_argument(comm, "request");
    ReceiveRequest* request = receive_pool.create(comm, kReceive);
    message::start_receive(*request, comm->point_to_point, buf, count, *type, source, tag);
    *out = request_to_handle(request);
    return MPI_SUCCESS;
} catch (const std::bad_alloc&) { return out_of_memory(); }

}  // namespace starling::mpi
