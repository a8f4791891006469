#include "mpi/buffered.h"

#include <cstdlib>
#include <memory>
#include <new>

#include "base/error.h"
#include "base/immortal.h"
#include "comm/session.h"
#include "message/point_to_point.h"
#include "mpi/message_check.h"
#include "mpi/request_handle.h"
#include "progress/engine.h"

namespace starling::mpi {

namespace {

/// A message in a buffer: this head, then the packed data. Blocks lie in address order.
struct Block {
    message::SendRequest request;
    Block* next = nullptr;
    size_t bytes = 0;  ///< with head, rounded
};
static_assert(sizeof(Block) + alignof(Block) <= MPI_BSEND_OVERHEAD);

size_t rounded(size_t bytes) { return (bytes + alignof(Block) - 1) & ~(alignof(Block) - 1); }

}  // namespace

/// An attached buffer. Blocks are given back when their sends turn out to be done, whenever room or a flush asks.
class SendBuffer {
  public:
    SendBuffer(void* memory, MPI_Count size) : memory_(memory), size_(size) {}

    void* memory() const { return memory_; }
    MPI_Count size() const { return size_; }
    bool automatic() const { return memory_ == MPI_BUFFER_AUTOMATIC; }

    /// Room for a message of `bytes`; nullptr if there is none.
    Block* allocate(size_t bytes) {
        const size_t need = rounded(sizeof(Block) + bytes);
        if (automatic()) return link(&first_, new (::operator new(need)) Block, need);
        char* const begin = reinterpret_cast<char*>(rounded(reinterpret_cast<uintptr_t>(memory_)));
        char* const end = static_cast<char*>(memory_) + size_;
        char* free_from = begin;
        Block** place = &first_;
        while (*place && static_cast<size_t>(reinterpret_cast<char*>(*place) - free_from) < need) {
            free_from = reinterpret_cast<char*>(*place) + (*place)->bytes;
            place = &(*place)->next;
        }
        if (!*place && (free_from > end || static_cast<size_t>(end - free_from) < need)) return nullptr;
        return link(place, new (free_from) Block, need);
    }

    /// Gives back the blocks whose sends are done; true if none is left.
    bool collect() {
        for (Block** place = &first_; *place;) {
            Block* block = *place;
            if (!block->request.done) {
                place = &block->next;
                continue;
            }
            *place = block->next;
            block->~Block();
            if (automatic()) ::operator delete(block);
        }
        return !first_;
    }

    void flush() {
        progress::wait_until([this] { return collect(); });
    }

  private:
    static Block* link(Block** place, Block* block, size_t bytes) {
        block->bytes = bytes;
        block->next = *place;
        return *place = block;
    }

    void* memory_;
    MPI_Count size_;
    Block* first_ = nullptr;
};

namespace {

SendBuffer* process_buffer = nullptr;

SendBuffer* buffer_of(comm::Comm& comm) {
    if (comm.attached_buffer) return static_cast<SendBuffer*>(comm.attached_buffer);
    const comm::Session* session = comm::session_of(comm.local_group());
    return session ? static_cast<SendBuffer*>(session->attached_buffer) : process_buffer;
}

/// Completes when all messages that were in the buffer have left it: asked for by polls.
struct Flush : progress::Request {
    SendBuffer* buffer = nullptr;
    Flush* next = nullptr;
};
constinit Immortal<RequestPool<Flush>> flush_pool_storage;
constinit auto& flush_pool = flush_pool_storage.value;
constexpr progress::RequestClass kFlush{.dispose = [](progress::Request& r) { flush_pool.destroy(static_cast<Flush&>(r)); }};
Flush* flushes = nullptr;

bool poll_flushes() {
    bool any = false;
    for (Flush** place = &flushes; *place;) {
        Flush* flush = *place;
        if (flush->buffer->collect()) {
            *place = flush->next;
            flush->complete();
            any = true;
        } else {
            place = &flush->next;
        }
    }
    return any;
}

int attach(SendBuffer*& place, comm::Comm* comm, void* memory, MPI_Count size) {
    if (phase != Phase::running) return not_running();
    if (place) return raise(comm, fail(MPI_ERR_BUFFER, "a buffer is attached already; detach it first"));
    if (size < 0) return raise(comm, fail(MPI_ERR_ARG, "the size of the buffer is negative"));
    place = new SendBuffer(memory, size);
    return MPI_SUCCESS;
}

int detach(SendBuffer*& place, comm::Comm* comm, void* address, CountOut size) {
    if (phase != Phase::running) return not_running();
    if (!address || !size) return null_argument(comm, address ? "size" : "buffer_addr");
    if (!place) return raise(comm, fail(MPI_ERR_BUFFER, "no buffer is attached"));
    place->flush();
    poll_flushes();  // those of this buffer complete now, while it is there
    *static_cast<void**>(address) = place->memory();
    size.set(place->size());
    delete place;
    place = nullptr;
    return MPI_SUCCESS;
}

int start_flush(SendBuffer* buffer, comm::Comm* comm, MPI_Request* out) {
    if (!out) return null_argument(comm, "request");
    if (!buffer || buffer->collect()) {
        *out = completed_request();
        return MPI_SUCCESS;
    }
    static bool polled = false;
    if (!polled) progress::add_poller(poll_flushes);
    polled = true;
    Flush* flush = flush_pool.create(comm, kFlush);
    flush->buffer = buffer;
    flush->next = flushes;
    flushes = flush;
    *out = request_to_handle(flush);
    return MPI_SUCCESS;
}

SendBuffer*& session_buffer(comm::Session& session) { return reinterpret_cast<SendBuffer*&>(session.attached_buffer); }

int bad_session() { return bad_handle(nullptr, MPI_ERR_SESSION, "session"); }

int raise(const comm::Session& session, int error) {
    return raise_through(session.errhandler, comm::HandlerKind::session, {.session = comm::to_handle(&session)}, error);
}

SendBuffer*& comm_buffer(comm::Comm& comm) { return reinterpret_cast<SendBuffer*&>(comm.attached_buffer); }

}  // namespace

void drop_buffer(void*& attached) {
    auto* buffer = static_cast<SendBuffer*>(attached);
    if (!buffer) return;
    buffer->flush();
    poll_flushes();
    delete buffer;
    attached = nullptr;
}

int send_buffered(comm::Comm& comm, const void* data, MPI_Count count, const datatype::Datatype& type, int dest, int tag) {
    SendBuffer* buffer = buffer_of(comm);
    const uint64_t bytes = datatype::packed_size(type, count);
    if (!buffer)
        return fail(MPI_ERR_BUFFER, "a buffered send of %llu bytes, but no buffer is attached (MPI_Buffer_attach)",
                    static_cast<unsigned long long>(bytes));
    buffer->collect();
    Block* block = buffer->allocate(bytes);
    if (!block) {
        progress::poll();
        buffer->collect();
        block = buffer->allocate(bytes);
    }
    if (!block)
        return fail(MPI_ERR_BUFFER, "no room for a message of %llu bytes in the attached buffer of %lld",
                    static_cast<unsigned long long>(bytes), static_cast<long long>(buffer->size()));
    void* packed = block + 1;
    datatype::pack(type, count, data, 0, packed, bytes);
    message::start_send(block->request, comm.point_to_point, packed, static_cast<int64_t>(bytes),
                        datatype::predefined(MPI_BYTE), dest, tag, message::Mode::standard);
    return MPI_SUCCESS;
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
    if (phase != Phase::running) return not_running();
    if (process_buffer) process_buffer->flush();
    return MPI_SUCCESS;
}

int Buffer_iflush(MPI_Request* request) {
    Lock lock;
    if (phase != Phase::running) return not_running();
    return start_flush(process_buffer, nullptr, request);
}

int Comm_attach_buffer(MPI_Comm handle, void* buffer, MPI_Count size) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    return attach(comm_buffer(*comm), comm, buffer, size);
}

int Comm_detach_buffer(MPI_Comm handle, void* buffer_addr, CountOut size) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    return detach(comm_buffer(*comm), comm, buffer_addr, size);
}

int Comm_flush_buffer(MPI_Comm handle) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    if (SendBuffer* buffer = comm_buffer(*comm)) buffer->flush();
    return MPI_SUCCESS;
}

int Comm_iflush_buffer(MPI_Comm handle, MPI_Request* request) {
    Lock lock;
    comm::Comm* comm = comm::from_handle(handle);
    if (!comm) return bad_comm(handle);
    return start_flush(comm_buffer(*comm), comm, request);
}

int Session_attach_buffer(MPI_Session handle, void* buffer, MPI_Count size) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    SendBuffer*& place = session_buffer(*session);
    if (place) return raise(*session, fail(MPI_ERR_BUFFER, "a buffer is attached already; detach it first"));
    if (size < 0) return raise(*session, fail(MPI_ERR_ARG, "the size of the buffer is negative"));
    return attach(place, nullptr, buffer, size);
}

int Session_detach_buffer(MPI_Session handle, void* buffer_addr, CountOut size) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    SendBuffer*& place = session_buffer(*session);
    if (!place) return raise(*session, fail(MPI_ERR_BUFFER, "no buffer is attached"));
    return detach(place, nullptr, buffer_addr, size);
}

int Session_flush_buffer(MPI_Session handle) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    if (SendBuffer* buffer = session_buffer(*session)) buffer->flush();
    return MPI_SUCCESS;
}

int Session_iflush_buffer(MPI_Session handle, MPI_Request* request) {
    Lock lock;
    comm::Session* session = comm::from_handle(handle);
    if (!session) return bad_session();
    return start_flush(session_buffer(*session), nullptr, request);
}

}  // namespace starling::mpi
