// Probes and matched probes (MPI 5.0 section 3.8).
#include "base/error.h"
#include "base/handle.h"
#include "message/match.h"
#include "message/point_to_point.h"
#include "message/receive.h"
#include "message/status.h"
#include "message/wait_report.h"
#include "mpi/pt2pt/message_check.h"
#include "mpi/pt2pt/message_handles.h"
#include "mpi/pt2pt/point_to_point.h"
#include "progress/engine.h"

namespace starling::mpi {

using message::Unexpected;

namespace {

progress::Outcome outcome_of(const Unexpected& found) {
    progress::Outcome outcome;
    outcome.source = found.source;
    outcome.tag = found.tag;
    outcome.bytes = found.bytes;
    return outcome;
}

Unexpected* message_from_handle(MPI_Message handle) { return object_behind<Unexpected>(handle); }

/// Implements all probes: waits for a message if `wait` is set, otherwise polls once. Returns null if there is no message, or after an
/// error.
Unexpected* probe(comm::Comm& comm, int source, int tag, bool wait, message::ProbeMode look, int& error) {
    Unexpected* found = message::find_unexpected(comm.point_to_point, source, tag, look);
    error = MPI_SUCCESS;
    struct Over {
        comm::Comm& comm;
        int source, tag;
        message::ProbeMode look;
        Unexpected*& found;
        bool operator()() const {
            found = message::find_unexpected(comm.point_to_point, source, tag, look);
            return found || message::sender_ended(comm.point_to_point, source);
        }
    };
    const comm::ReferenceGuard kept(&comm);
    const Over over{comm, source, tag, look, found};
    const progress::WaitSite site{.report_wait = [](const void* argument, progress::WaitReporter& teller) {
        const auto& what = *static_cast<const Over*>(argument);
        message::report_probe(what.comm.point_to_point, what.source, what.tag, teller);
    }};
    // Polls again, because another thread may have taken the message before this thread gets the lock.
    for (bool again = wait && !found; again; again = program_threads_at_once() && !over()) progress::wait_until(over, site);
    // A wait for senders that have all ended polls nothing, but this process may have sent a message to itself.
    if (!found) {
        progress::test();
        over();
    }
    // A program may poll for messages of a rank whose job has ended normally: it waits for nothing.
    if (!found &&
        (wait ? message::sender_ended(comm.point_to_point, source) : message::sender_failed(comm.point_to_point, source)))
        error = raise(&comm, message::why_sender_ended(comm.point_to_point, source));
    return found;
}

/// Removes a message that a matched probe found from the queue, and returns its handle. The message keeps a reference to its communicator.
MPI_Message make_message(comm::Comm& comm, Unexpected& found) {
    message::MatchQueues::remove(found);
    found.communicator = comm.retain();
    return reinterpret_cast<MPI_Message>(&found);
}

int probe_any(int source, int tag, MPI_Comm handle, bool wait, int* flag, MPI_Message* message, MPI_Status* status) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_receive(comm, handle, source, tag)) return error;
    if (source == MPI_PROC_NULL) {
        if (flag) *flag = 1;
        if (message) *message = MPI_MESSAGE_NO_PROC;
        message::fill_status(status, message::proc_null_outcome());
        return check_no_transfer(comm);
    }
    int error;
    Unexpected* found =
        probe(*comm, source, tag, wait, message ? message::ProbeMode::to_take : message::ProbeMode::only, error);
    if (flag) *flag = found != nullptr;
    if (message) *message = found ? make_message(*comm, *found) : MPI_MESSAGE_NULL;
    if (found) message::fill_status(status, outcome_of(*found));
    return error;
}

}  // namespace

int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    return probe_any(source, tag, comm, true, nullptr, nullptr, status);
}

int Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    if (!flag) return null_argument(comm::from_handle(comm), "flag");
    return probe_any(source, tag, comm, false, flag, nullptr, status);
}

int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
    if (!message) return null_argument(comm::from_handle(comm), "message");
    return probe_any(source, tag, comm, true, nullptr, message, status);
}

int Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
    if (!flag || !message) return null_argument(comm::from_handle(comm), flag ? "message" : "flag");
    return probe_any(source, tag, comm, false, flag, message, status);
}

namespace {

/// Starts the receive of `*handle` with `request` and sets the handle to null. Returns the code for the caller.
int receive_matched(message::ReceiveRequest& request, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* handle,
                    comm::Comm*& comm) {
    if (*handle == MPI_MESSAGE_NO_PROC) {
        request.outcome = message::proc_null_outcome();
        request.done = true;
        *handle = MPI_MESSAGE_NULL;
        return MPI_SUCCESS;
    }
    Unexpected* found = message_from_handle(*handle);
    if (!found) return bad_handle(nullptr, MPI_ERR_REQUEST, "message");
    const datatype::Datatype* type = datatype::from_handle(datatype);
    comm = static_cast<comm::Comm*>(found->communicator);
    if (const int error = check_data(comm, type, datatype, buf, count)) return error;
    *handle = MPI_MESSAGE_NULL;
    message::start_matched_receive(request, *found, buf, count, *type);
    return MPI_SUCCESS;
}

}  // namespace

int Mrecv(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* handle, MPI_Status* status) {
    Lock lock;
    if (!handle) return null_argument(nullptr, "message");
    message::ReceiveRequest request;
    comm::Comm* comm = nullptr;
    if (const int error = receive_matched(request, buf, count, datatype, handle, comm)) return error;
    progress::wait(request, {.report_wait = message::report_receive});
    message::fill_status(status, request.outcome);
    const int error = raise(comm, progress::error_of(request));
    if (comm) comm->release();
    return error;
}

int Imrecv(void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* handle, MPI_Request* out) {
    Lock lock;
    if (!handle || !out) return null_argument(nullptr, handle ? "request" : "message");
    comm::Comm* comm = nullptr;
    message::ReceiveRequest* request = receive_pool.create(nullptr, kReceive);
    if (const int error = receive_matched(*request, buf, count, datatype, handle, comm)) {
        receive_pool.destroy(*request);
        return error;
    }
    request->communicator = comm;  // the request takes over the message's reference
    *out = request_to_handle(request);
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
