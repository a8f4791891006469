#include "mpi/pt2pt/buffered.h"

#include <utility>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "comm/session.h"
#include "message/send_buffer.h"
#include "mpi/common/session_check.h"
#include "mpi/completion/request_handle.h"
#include "mpi/pt2pt/message_check.h"

namespace starling::mpi {

using message::BsendBuffer;
using message::Flush;

namespace {

STARLING_STATE BsendBuffer* process_buffer = nullptr;

BsendBuffer* buffer_of(comm::Comm& comm) {
    if (comm.attached_buffer) return comm.attached_buffer;
    // Without its own buffer, an MPI session uses the process's buffer (MPI 5.0 section 3.6).
    const comm::Session* session = comm::session_of(comm.local_group());
    return session && session->attached_buffer ? session->attached_buffer : process_buffer;
}

STARLING_STATE NoDestroy<RequestPool<Flush>> flush_pool_storage;
constinit auto& flush_pool = flush_pool_storage.value;
constexpr progress::RequestClass kFlushRequest{
    .dispose = [](progress::Request& r) { flush_pool.destroy(static_cast<Flush&>(r)); }};

int attach(BsendBuffer*& place, comm::Comm* comm, void* memory, MPI_Count size) {
    if (phase != LibraryPhase::running) return not_running();
    if (place) return raise(comm, fail(MPI_ERR_BUFFER, "a buffer is attached already; detach it first"));
    if (size < 0 && memory != MPI_BUFFER_AUTOMATIC)
        return raise(comm, fail(MPI_ERR_ARG, "the size of the buffer, %lld, is negative", static_cast<long long>(size)));
    place = new BsendBuffer(memory, size);
    return MPI_SUCCESS;
}

int detach(BsendBuffer*& place, comm::Comm* comm, void* address, CountOut size) {
    if (phase != LibraryPhase::running) return not_running();
    if (!address || !size) return null_argument(comm, address ? "size" : "buffer_addr");
    if (!place) return raise(comm, fail(MPI_ERR_BUFFER, "no buffer is attached; attach one first"));
    BsendBuffer* const buffer = std::exchange(place, nullptr);  // detached first, so that no other thread uses it
    buffer->flush();                                            // completes MPI_Buffer_iflush requests while the buffer exists
    *static_cast<void**>(address) = buffer->memory();
    size.set(buffer->size());
    buffer->end();
    return MPI_SUCCESS;
}

int start_flush(BsendBuffer* buffer, comm::Comm* comm, MPI_Request* out) {
    if (!out) return null_argument(comm, "request");
    if (!buffer || buffer->collect()) {
        *out = completed_request();
        return MPI_SUCCESS;
    }
    Flush* flush = flush_pool.create(comm, kFlushRequest);
    message::start_flush(*flush, *buffer);
    *out = request_to_handle(flush);
    return MPI_SUCCESS;
}

}  // namespace

void drop_buffer(BsendBuffer*& buffer) {
    BsendBuffer* const dropped = std::exchange(buffer, nullptr);
    if (!dropped) return;
    dropped->flush();
    dropped->end();
}

int send_buffered(comm::Comm& comm, const void* data, MPI_Count count, const datatype::Datatype& type, int dest, int tag) {
    BsendBuffer* buffer = buffer_of(comm);
    if (!buffer)
        return fail(MPI_ERR_BUFFER,
                    "a buffered send of %llu bytes requires a buffer, but no buffer is attached; attach one first "
                    "(MPI_Buffer_attach)",
                    static_cast<unsigned long long>(datatype::packed_size(type, count)));
    return buffer->send(comm.point_to_point, data, count, type, dest, tag);
}

int Bsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm handle) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (const int error = check_send(comm, handle, dest, tag)) return error;
    const datatype::Datatype* type = datatype::from_handle(datatype);
    if (const int error = check_data(comm, type, datatype, buf, count)) return error;
    if (dest == MPI_PROC_NULL) return MPI_SUCCESS;
    return raise(comm, send_buffered(*comm, buf, count, *type, dest, tag));
}

int Ibsend(const void* buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm handle, MPI_Request* request) {
    if (!request) return null_argument(comm::from_handle(handle), "request");
    const int error = Bsend(buf, count, datatype, dest, tag, handle);
    if (error == MPI_SUCCESS) *request = completed_request();
    return error;
}

int Buffer_attach(void* buffer, MPI_Count size) {
    Lock lock;
    return attach(process_buffer, nullptr, buffer, size);
}

int Buffer_detach(void* buffer_addr, CountOut size) {
    Lock lock;
    return detach(process_buffer, nullptr, buffer_addr, size);
}

int Buffer_flush() {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (process_buffer) process_buffer->flush();
    return MPI_SUCCESS;
}

int Buffer_iflush(MPI_Request* request) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    return start_flush(process_buffer, nullptr, request);
}

int Comm_attach_buffer(MPI_Comm handle, void* buffer, MPI_Count size) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    return attach(comm->attached_buffer, comm, buffer, size);
}

int Comm_detach_buffer(MPI_Comm handle, void* buffer_addr, CountOut size) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    return detach(comm->attached_buffer, comm, buffer_addr, size);
}

int Comm_flush_buffer(MPI_Comm handle) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (BsendBuffer* buffer = comm->attached_buffer) buffer->flush();
    return MPI_SUCCESS;
}

int Comm_iflush_buffer(MPI_Comm handle, MPI_Request* request) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    return start_flush(comm->attached_buffer, comm, request);
}

int Session_attach_buffer(MPI_Session handle, void* buffer, MPI_Count size) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    BsendBuffer*& place = session->attached_buffer;
    if (place) return raise(*session, fail(MPI_ERR_BUFFER, "a buffer is attached already; detach it first"));
    if (size < 0 && buffer != MPI_BUFFER_AUTOMATIC)
        return raise(*session, fail(MPI_ERR_ARG, "the size of the buffer, %lld, is negative", static_cast<long long>(size)));
    return attach(place, nullptr, buffer, size);
}

int Session_detach_buffer(MPI_Session handle, void* buffer_addr, CountOut size) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    BsendBuffer*& place = session->attached_buffer;
    if (!place) return raise(*session, fail(MPI_ERR_BUFFER, "no buffer is attached; attach one first"));
    return detach(place, nullptr, buffer_addr, size);
}

int Session_flush_buffer(MPI_Session handle) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    if (BsendBuffer* buffer = session->attached_buffer) buffer->flush();
    return MPI_SUCCESS;
}

int Session_iflush_buffer(MPI_Session handle, MPI_Request* request) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    return start_flush(session->attached_buffer, nullptr, request);
}

}  // namespace starling::mpi
