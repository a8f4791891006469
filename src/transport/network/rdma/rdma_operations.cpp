// RDMA reads and writes of a peer's memory over open RC connections. Short transfers use a registered slot of the port, or are
// sent inline. Long ones register the user's memory.
#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "mpi.h"
#include "transport/network/rdma/rc_connection.h"
#include "transport/remote_memory.h"

namespace starling::network {

namespace {
constexpr uint64_t kPart = 4u << 20;   ///< bytes of one part; frames of the same queue can go between two parts
constexpr uint32_t kMostUnderWay = 4;  ///< most parts of one operation in flight
}  // namespace

RcPort& Rc::memory_of(uint8_t place, verbs::Port& port) {
    for (auto& one : ports_)
        if (&one->port() == &port) return *one;
    return *ports_.emplace_back(std::make_unique<RcPort>(place, port));
}

RegisteredMemory* Rc::register_memory(RcConnection& to, const void* memory, uint64_t bytes, bool stays,
                                      transport::RemoteKey& region) {
    RegisteredMemory* const loan = to.memory().register_memory(memory, bytes, stays, region);
    if (loan) loan->to = to.user;
    return loan;
}

void Rc::deregister(RegisteredMemory& loan, bool at_once) {
    const void* const to = loan.to;
    const RcPort* const port = loan.port;
    RcPort::deregister(loan, at_once);
    if (!at_once || !port) return;
    const auto reads = [&](const auto& one) { return one->user == to && one->port_ == port && one->queue_; };
    const auto found = std::find_if(connections_.begin(), connections_.end(), reads);
    if (found == connections_.end()) return;
    broke(**found, "memory that the peer may be reading was deregistered");
    clear_failure();
}

/// Creates an operation. Returns null with failure_text() if it cannot begin.
RcOperation* Rc::begin(RcConnection& connection, RcOperation::RcOperationKind kind, const transport::RemoteKey& region,
                       uint64_t offset, uint64_t bytes, transport::Completion& done) {
    if (!connection.reaches(region)) {
        fail(MPI_ERR_OTHER, "no RDMA connection to the owner of the memory region is open");
        return nullptr;
    }
    RcOperation& one = acquire_operation(connection, kind);
    one.completion = &done;
    one.remote = RcPort::key_of(region);
    one.address = region.word[0] + offset;
    one.bytes = bytes;
    done.done = false;
    done.error = MPI_SUCCESS;
    return &one;
}

RcOperation& Rc::acquire_operation(RcConnection& connection, RcOperation::RcOperationKind kind) {
    if (free_operations_.empty()) {
        operations_.push_back(std::make_unique<RcOperation>());
        operations_.back()->index = static_cast<uint32_t>(operations_.size() - 1);
        free_operations_.push_back(operations_.back().get());
    }
    RcOperation& one = *free_operations_.back();
    free_operations_.pop_back();
    const uint32_t generation = one.generation + 1, index = one.index;
    one = RcOperation{};
    one.generation = generation;
    one.index = index;
    one.kind = kind;
    one.connection = &connection;
    return one;
}

void Rc::release_operation(RcOperation& operation) {
    operation.connection = nullptr;
    free_operations_.push_back(&operation);
}

/// Provides registered memory for the operation's local side. Returns false with failure_text() on failure.
bool Rc::place_data(RcOperation& operation, void* memory) {
    RcPort& port = operation.connection->memory();
    const bool writes = operation.kind == RcOperation::RcOperationKind::write;
    operation.memory = static_cast<std::byte*>(memory);
    if (writes && operation.bytes <= port.port().facts().inline_bytes) return true;
    if (operation.bytes <= RcPort::kSlot) {
        if (std::byte* const slot = port.acquire_slot()) {
            if (writes)
                std::memcpy(slot, memory, operation.bytes);
            else
                operation.copy_to = memory;
            operation.slot = operation.memory = slot;
            operation.local = port.slot_key();
            return true;
        }
    }
    operation.registration = port.registrations().use(memory, operation.bytes);
    if (!operation.registration) {
        fail(MPI_ERR_OTHER, "%s can't register the memory: %s", port.port().facts().device, port.port().problem());
        return false;
    }
    operation.local = operation.registration->memory.local;
    return true;
}

int Rc::set_out(RcOperation* operation, void* memory) {
    if (!operation) return MPI_ERR_OTHER;
    if (!place_data(*operation, memory)) return release_operation(*operation), MPI_ERR_OTHER;
    RcConnection& connection = *operation->connection;
    connection.issuing_.push_back(operation);
    if (operation->bytes == 0) return end(*operation), MPI_SUCCESS;
    // If other operations wait for room, the `room` event will issue this operation, too.
    if (connection.issuing_.front() == operation) issue_all(connection);
    return MPI_SUCCESS;
}

int Rc::read(RcConnection& of, const transport::RemoteKey& region, uint64_t offset, void* into, uint64_t bytes,
             transport::Completion& done) {
    return set_out(begin(of, RcOperation::RcOperationKind::read, region, offset, bytes, done), into);
}

int Rc::write(RcConnection& to, const transport::RemoteKey& region, uint64_t offset, const void* from, uint64_t bytes,
              transport::Completion& done) {
    return set_out(begin(to, RcOperation::RcOperationKind::write, region, offset, bytes, done), const_cast<void*>(from));
}

int Rc::write_expected(RcConnection& to, const transport::RemoteKey& region, const void* from, uint64_t bytes, uint32_t word,
                       transport::WriteNotice told, transport::Completion& done) {
    RcOperation* const one = begin(to, RcOperation::RcOperationKind::write, region, 0, bytes, done);
    if (one) {
        one->tells = true;
        one->frame_pending = told == transport::WriteNotice::separate_send;
        one->word = word;
    }
    return set_out(one, const_cast<void*>(from));
}

/// Issues one part of an operation, or the notifying frame after the last part. The device gets the last part and the frame with one
/// doorbell. Returns false if issuing is not possible now or never will be.
bool Rc::issue(RcOperation& operation) {
    RcConnection& connection = *operation.connection;
    if (operation.issued == operation.bytes) {
        if (send_frame(connection, RcFrame::RcFrameKind::written, operation.word) != verbs::WorkStatus::done) return false;
        operation.frame_pending = false;
        return true;
    }
    if (operation.under_way >= kMostUnderWay) return false;
    verbs::Queue::Transfer what;
    what.token = operation.token();
    what.memory = operation.memory + operation.issued;
    what.local = operation.local;
    what.bytes = static_cast<uint32_t>(std::min(kPart, operation.bytes - operation.issued));
    what.address = operation.address + operation.issued;
    what.remote = operation.remote;
    const bool last = operation.issued + what.bytes == operation.bytes;
    what.more = last && operation.frame_pending;
    verbs::Queue& queue = *connection.queue_;
    verbs::WorkStatus status = verbs::WorkStatus::broken;
    switch (operation.kind) {
        case RcOperation::RcOperationKind::read:
            status = queue.read(what);
            break;
        case RcOperation::RcOperationKind::write:
            status = last && operation.tells && !operation.frame_pending ? queue.write_with_note(what, operation.word)
                                                                         : queue.write(what);
            break;
    }
    if (status != verbs::WorkStatus::done) return false;
    operation.issued += what.bytes;
    ++operation.under_way;
    return true;
}

/// Issues operations while there is room; a `room` or `done` event issues the rest.
void Rc::issue_all(RcConnection& connection) {
    if (!connection.queue_) return;
    while (RcOperation* const first = connection.issuing_.front()) {
        while (!first->all_issued())
            if (!issue(*first)) return;
        RcConnection::RcOperationList::remove(first);
        connection.issued_.push_back(first);
    }
}

void Rc::on_done(const verbs::VerbsEvent& event) {
    const auto index = static_cast<uint32_t>(event.token);
    if (index >= operations_.size()) return;
    RcOperation& one = *operations_[index];
    // The operation has ended with its connection, and its entry may be in use by another one.
    if (!one.connection || one.generation != static_cast<uint32_t>(event.token >> 32)) return;
    RcConnection& connection = *one.connection;
    --one.under_way;
    one.failed |= event.status != verbs::WorkStatus::done;
    if (one.failed) {
        one.issued = one.bytes;
        one.frame_pending = false;
    }
    if (one.under_way == 0 && one.all_issued()) end(one);
    issue_all(connection);
    if (connection.finish_pending_) on_room(connection);
}

/// Ends an operation after the device's last access to its memory, and queues its completion.
void Rc::end(RcOperation& operation) {
    RcPort& port = operation.connection->memory();
    if (operation.copy_to && !operation.failed) std::memcpy(operation.copy_to, operation.slot, operation.bytes);
    if (operation.slot) port.release_slot(operation.slot);
    if (operation.registration) port.registrations().done(*operation.registration);
    RcConnection::RcOperationList::remove(&operation);
    release_operation(operation);
    if (!operation.completion) return;
    transport::Completion& done = *operation.completion;
    done.error = operation.failed ? MPI_ERR_OTHER : MPI_SUCCESS;
    done.next = nullptr;
    *last_ended_ = &done;
    last_ended_ = &done.next;
}

/// Fails all operations of the connection, since its queue is closed.
void Rc::end_all(RcConnection& connection) {
    for (auto* list : {&connection.issuing_, &connection.issued_})
        while (RcOperation* const one = list->front()) {
            one->failed = true;
            end(*one);
        }
}

/// Reports queued completions; a callback may begin other operations.
bool Rc::report_ended() {
    bool any = false;
    while (transport::Completion* const first = ended_) {
        ended_ = first->next;
        if (!ended_) last_ended_ = &ended_;
        first->done = any = true;
        if (first->then) first->then(*first);
    }
    return any;
}

}  // namespace starling::network
