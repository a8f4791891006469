// Send and receive in one call (MPI 5.0 section 3.11).
#include <memory>

#include "base/no_destroy.h"
#include "base/state.h"
#include "message/point_to_point.h"
#include "message/status.h"
#include "message/wait_report.h"
#include "mpi/completion/request_handle.h"
#include "mpi/pt2pt/message_check.h"
#include "mpi/pt2pt/point_to_point.h"
#include "progress/engine.h"

namespace starling::mpi {

using message::SendMode;

namespace {

/// The two halves of a combined operation; it completes when both have completed.
struct SendReceiveRequest : progress::Request {
    struct SendHalf : message::SendRequest {
        SendReceiveRequest* whole = nullptr;
    } send;
    struct ReceiveHalf : message::ReceiveRequest {
        SendReceiveRequest* whole = nullptr;
    } receive;
    int open = 2;
    std::unique_ptr<std::byte[]> copy;  ///< packed data to send, for MPI_Sendrecv_replace
};
STARLING_STATE NoDestroy<RequestPool<SendReceiveRequest>> exchange_pool_storage;
constinit auto& exchange_pool = exchange_pool_storage.value;

void report_wait(const progress::Request& request, progress::WaitReporter& teller) {
    const auto& whole = static_cast<const SendReceiveRequest&>(request);
    if (whole.receive.channel && !whole.receive.done) message::report_receive(whole.receive, teller);
    if (whole.send.peer && !whole.send.done) message::report_send(whole.send, teller);
}
constexpr progress::RequestClass kExchange{
    .dispose = [](progress::Request& r) { exchange_pool.destroy(static_cast<SendReceiveRequest&>(r)); },
    .report_wait = report_wait};

void half_done(SendReceiveRequest& whole) {
    if (--whole.open > 0) return;
    whole.outcome = whole.receive.outcome;
    if (whole.send.outcome.error) whole.outcome.error = whole.send.outcome.error;
    if (whole.outcome.error) [[unlikely]] {
        progress::recall_failure(whole.send.outcome.error ? static_cast<progress::Request&>(whole.send) : whole.receive);
        progress::save_failure(whole);
    }
    whole.complete();
}
constexpr progress::RequestClass kSendHalf{.dispose = nullptr, .completed = [](progress::Request& r) {
                                               half_done(*static_cast<SendReceiveRequest::SendHalf&>(r).whole);
                                           }};
constexpr progress::RequestClass kReceiveHalf{.dispose = nullptr, .completed = [](progress::Request& r) {
                                                  half_done(*static_cast<SendReceiveRequest::ReceiveHalf&>(r).whole);
                                              }};

struct TransferSide {
    void* buffer;
    MPI_Count count;
    MPI_Datatype type;
    int rank;
    int tag;
};

int check(comm::Comm* comm, MPI_Comm handle, const TransferSide& send, const TransferSide& receive) {
    if (const int error = check_send(comm, handle, send.rank, send.tag)) return error;
    if (const int error = check_receive(comm, handle, receive.rank, receive.tag)) return error;
    if (const int error = check_side(comm, send.rank, send.type, send.buffer, send.count)) return error;
    return check_side(comm, receive.rank, receive.type, receive.buffer, receive.count);
}

void start_send_half(SendReceiveRequest& whole, comm::Comm& comm, const TransferSide& send) {
    if (send.rank == MPI_PROC_NULL)
        half_done(whole);
    else
        message::start_send(whole.send, comm.point_to_point, send.buffer, send.count, *datatype::from_handle(send.type),
                            send.rank, send.tag, SendMode::standard);
}

void start_halves(SendReceiveRequest& whole, comm::Comm& comm, const TransferSide& send, const TransferSide& receive) {
    whole.send.whole = whole.receive.whole = &whole;
    whole.send.operations = &kSendHalf;
    whole.receive.operations = &kReceiveHalf;
    // If all others have ended, the receive fails unless the message to this process itself is there first.
    const bool sends_first = receive.rank == MPI_ANY_SOURCE && message::sender_ended(comm.point_to_point, MPI_ANY_SOURCE);
    if (sends_first) start_send_half(whole, comm, send);
    if (receive.rank == MPI_PROC_NULL) {
        whole.receive.outcome = message::proc_null_outcome();
        half_done(whole);
    } else {
        message::start_receive(whole.receive, comm.point_to_point, receive.buffer, receive.count,
                               *datatype::from_handle(receive.type), receive.rank, receive.tag);
    }
    if (!sends_first) start_send_half(whole, comm, send);
}

/// Replaces `send` by a packed copy of its data, owned by `whole`; for MPI_Sendrecv_replace.
void copy_out(SendReceiveRequest& whole, TransferSide& send) {
    const datatype::Datatype& type = *datatype::from_handle(send.type);
    const uint64_t bytes = datatype::packed_size(type, send.count);
    whole.copy = std::make_unique_for_overwrite<std::byte[]>(bytes + 1);
    datatype::pack(type, send.count, send.buffer, 0, whole.copy.get(), bytes);
    send.buffer = whole.copy.get();
    send.count = static_cast<MPI_Count>(bytes);
    send.type = MPI_BYTE;
}

int run(TransferSide send, const TransferSide& receive, MPI_Comm handle, bool replace, MPI_Status* status) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check(comm, handle, send, receive)) return error;
    SendReceiveRequest whole;
    if (replace && send.rank != MPI_PROC_NULL) copy_out(whole, send);
    start_halves(whole, *comm, send, receive);
    const comm::ReferenceGuard kept(comm);
    progress::wait(whole, {.report_wait = [](const void* r, progress::WaitReporter& teller) {
                       report_wait(*static_cast<const progress::Request*>(r), teller);
                   }});
    message::fill_status(status, whole.outcome);
    return raise(comm, progress::error_of(whole));
}

int start(TransferSide send, const TransferSide& receive, MPI_Comm handle, bool replace, MPI_Request* out) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check(comm, handle, send, receive)) return error;
    if (!out) return null_argument(comm, "request");
    SendReceiveRequest* whole = exchange_pool.create(comm, kExchange);
    if (replace && send.rank != MPI_PROC_NULL) copy_out(*whole, send);
    start_halves(*whole, *comm, send, receive);
    *out = request_to_handle(whole);
    return MPI_SUCCESS;
}

}  // namespace

int Sendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
             MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status) {
    return run({const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag},
               {recvbuf, recvcount, recvtype, source, recvtag}, comm, false, status);
}

int Sendrecv_replace(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                     MPI_Comm comm, MPI_Status* status) {
    return run({buf, count, datatype, dest, sendtag}, {buf, count, datatype, source, recvtag}, comm, true, status);
}

int Isendrecv(const void* sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
              MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request* request) {
    return start({const_cast<void*>(sendbuf), sendcount, sendtype, dest, sendtag},
                 {recvbuf, recvcount, recvtype, source, recvtag}, comm, false, request);
}

int Isendrecv_replace(void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
                      MPI_Comm comm, MPI_Request* request) {
    return start({buf, count, datatype, dest, sendtag}, {buf, count, datatype, source, recvtag}, comm, true, request);
}

}  // namespace starling::mpi
