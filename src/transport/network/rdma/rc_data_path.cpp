// Transfers over open RC connections: session frames and stream fragments are all sent as frames of the queue.
#include <algorithm>
#include <cstring>
#include <new>

#include "transport/network/rdma/rc_connection.h"
#include "transport/network/wire/datagram.h"

namespace starling::network {

namespace {
constexpr uint64_t kRdmaPumpBytes = 1u << 20;  ///< most bytes sent in one call, before other connections are served
constexpr PathId kPath = 1;                    ///< constant, since a stream uses one RC connection at a time
}  // namespace

SendResult RcConnection::send(const iovec* parts, int count) { return static_cast<Rc&>(by).send(*this, parts, count); }

SendResult Rc::send(RcConnection& connection, const iovec* parts, int count) {
    if (connection.state_ != Connection::CarrierState::open || connection.finished_ || !connection.queue_)
        return SendResult::closed;
    const bool by_ring = send_by_ring(connection, parts, count);
    switch (by_ring ? verbs::WorkStatus::done : post(connection, parts, count)) {
        case verbs::WorkStatus::done:
            ++counters_.frames_sent;
            return SendResult::done;
        case verbs::WorkStatus::busy:
        case verbs::WorkStatus::no_memory:
            connection.room_wanted_ = true;
            return SendResult::busy;
        default:
            return SendResult::closed;  // the queue is broken, and a `broken` event follows
    }
}

verbs::WorkStatus Rc::post(RcConnection& connection, const iovec* parts, int count) {
    const verbs::WorkStatus status = connection.queue_->send(parts, count);
    if (status == verbs::WorkStatus::done) ++connection.frames_out_;
    return status;
}

verbs::WorkStatus Rc::send_frame(RcConnection& connection, RcFrame::RcFrameKind kind, uint32_t word) {
    RcFrame frame;
    frame.kind = kind;
    frame.bytes = word;
    RcRingOffer ring;
    const bool may_grant = kind == RcFrame::RcFrameKind::hello || kind == RcFrame::RcFrameKind::ring;
    const bool granted = may_grant && grant_ring(connection, ring);
    if (kind == RcFrame::RcFrameKind::ring && !granted) return verbs::WorkStatus::done;
    const iovec parts[] = {{&frame, sizeof frame}, {&ring, sizeof ring}};
    const verbs::WorkStatus status = post(connection, parts, granted ? 2 : 1);
    if (granted && status != verbs::WorkStatus::done) drop_ring_in(connection);
    return status;
}

void Rc::finish(Connection& one) {
    RcConnection& connection = of(one);
    if (connection.state_ != Connection::CarrierState::open || connection.finished_) return;
    connection.finished_ = true;
    strand(connection);
    send_finish(connection);
}

/// Sends the finish frame once all transfers have ended. The peer may release its memory when it receives the frame, so no transfer may
/// still access it. The device must also have stopped reading this side's ring mirror.
void Rc::send_finish(RcConnection& connection) {
    try {
        connection.finish_pending_ = !connection.issuing_.empty() || !connection.issued_.empty() || !settle_ring(connection);
    } catch (const std::bad_alloc&) { return broke(connection, "out of memory"); }
    if (connection.finish_pending_) return;
    const verbs::WorkStatus status = send_frame(connection, RcFrame::RcFrameKind::finish);
    connection.finish_pending_ = status == verbs::WorkStatus::busy;
    connection.finish_sent_ = status == verbs::WorkStatus::done;
}

void Rc::happened(const verbs::VerbsEvent& event) {
    using VerbsEventKind = verbs::VerbsEvent::VerbsEventKind;
    if (event.kind == VerbsEventKind::done) return on_done(event);
    RcConnection& connection = *static_cast<RcConnection*>(event.user);
    switch (event.kind) {
        case VerbsEventKind::frame:
            return on_frame(connection, event.data, event.bytes);
        case VerbsEventKind::note:
            return on_note(connection, event.word);
        case VerbsEventKind::room:
            return on_room(connection);
        case VerbsEventKind::broken:
            return broke(connection, std::string(connection.port().facts().device) + ": " + connection.port().problem());
        default:
            return;
    }
}

// Handles a frame of the queue. Its data is lost after this call. So if there is no memory for it, the queue is closed, and the peer
// repeats on another path what was not acknowledged.
void Rc::on_frame(RcConnection& connection, const std::byte* data, uint32_t bytes) {
    if (!connection.queue_ || connection.state_ == Connection::CarrierState::dropped) return;
    // Handle first the frames that the peer wrote into the ring earlier.
    (void)adopt_ring(connection);
    if (!connection.queue_ || connection.state_ == Connection::CarrierState::dropped) return;
    ++connection.frames_in_;
    try {
        if (!handle_frame(connection, data, bytes)) return refuse(connection);
        if (bytes <= RcRing::kMost && connection.state_ == Connection::CarrierState::open) earn_ring(connection);
    } catch (const std::bad_alloc&) { broke(connection, "out of memory"); }
}

void Rc::on_note(RcConnection& connection, uint32_t word) {
    if (!connection.queue_ || connection.state_ != Connection::CarrierState::open) return;
    if (word == RcRing::kWord)
        (void)adopt_ring(connection);
    else if (!on_word(connection, word))
        refuse(connection);
}

void Rc::refuse(RcConnection& connection) {
    ++counters_.malformed;
    broke(connection, "malformed data was received over the connection");
}

/// Handles a frame in its order. Returns false if the frame is malformed.
bool Rc::handle_frame(RcConnection& connection, const std::byte* data, uint32_t bytes) {
    RcFrame frame;
    if (bytes < sizeof frame) return false;
    std::memcpy(&frame, data, sizeof frame);
    const bool open = connection.state_ == Connection::CarrierState::open;
    if (frame.magic == DatagramHeader::kMagic) {
        if (!open) return false;
        ++counters_.frames_received;
        return upcalls_.frame(connection, data, bytes) || connection.state_ == Connection::CarrierState::dropped;
    }
    if (frame.magic != RcFrame::kMagic || frame.version != kRcVersion) return false;
    switch (frame.kind) {
        case RcFrame::RcFrameKind::hello:
            on_hello(connection);
            return bytes == sizeof frame || connection.state_ != Connection::CarrierState::open ||
                   on_ring_offer(connection, data, bytes);
        case RcFrame::RcFrameKind::fragment:
            return open && handle_fragment(connection, data, bytes);
        case RcFrame::RcFrameKind::written:
            return open && on_word(connection, frame.bytes);
        case RcFrame::RcFrameKind::ring:
            return open && on_ring_offer(connection, data, bytes);
        case RcFrame::RcFrameKind::consumed:
            return open && (!connection.ring_out_ || connection.ring_out_->left || connection.ring_out_->credit(frame.bytes));
        case RcFrame::RcFrameKind::ring_back:
            return open && on_ring_back(connection);
        case RcFrame::RcFrameKind::ring_left:
            on_ring_left(connection);
            return open;
        case RcFrame::RcFrameKind::finish:
            connection.finish_received_ = true;
            if (open) upcalls_.ended(connection);
            return open;
    }
    return false;
}

bool Rc::handle_fragment(RcConnection& connection, const std::byte* data, uint32_t bytes) {
    RcPiece head;
    if (bytes < sizeof head) return false;
    std::memcpy(&head, data, sizeof head);
    if (head.frame.bytes != bytes - sizeof head) return false;
    const StreamFragment fragment{head.serial, head.generation, head.offset, head.frame.bytes};
    if (std::byte* const into = upcalls_.target(connection, fragment, 0, fragment.bytes))
        std::memcpy(into, data + sizeof head, fragment.bytes);
    else
        upcalls_.unpack(connection, fragment, 0, data + sizeof head, fragment.bytes);
    ++counters_.fragments_received;
    counters_.fragment_bytes_received += fragment.bytes;
    upcalls_.fragment(connection, fragment);
    return true;
}

void Rc::on_room(RcConnection& connection) {
    if (!connection.queue_) return;
    if (connection.hello_pending_)
        connection.hello_pending_ = send_frame(connection, RcFrame::RcFrameKind::hello) == verbs::WorkStatus::busy;
    if (connection.hello_pending_) return;
    if (connection.left_pending_)
        connection.left_pending_ = send_frame(connection, RcFrame::RcFrameKind::ring_left) == verbs::WorkStatus::busy;
    if (connection.left_pending_) return;
    if (connection.finish_pending_) {
        issue_all(connection);
        send_finish(connection);
        if (connection.finish_pending_ || !connection.queue_ || connection.state_ != Connection::CarrierState::dropped) return;
        connection.queue_->close(true);
        connection.queue_ = nullptr;
        return broke(connection, "");  // the connection has ended
    }
    if (connection.state_ != Connection::CarrierState::open) return;
    grant_room(connection);
    issue_all(connection);
    pump(connection);
}

/// Lets the session send its frames before all else. Returns false if there is no more room.
bool Rc::grant_room(RcConnection& connection) {
    if (!connection.room_wanted_) return true;
    connection.room_wanted_ = false;
    upcalls_.room(connection);
    return !connection.room_wanted_;
}

void Rc::pump(RcConnection& connection) {
    uint64_t budget = kRdmaPumpBytes;
    while (connection.state_ == Connection::CarrierState::open && !connection.finished_) {
        if (!grant_room(connection)) return;
        OutStream* const stream = connection.working_.front();
        if (!stream) return;
        if (budget < connection.frame_limit_) {
            if (!connection.to_pump_) to_pump_.push_back(&connection);
            connection.to_pump_ = true;
            return;
        }
        if (!send_fragment(connection, *stream)) return;
        budget -= connection.frame_limit_;
    }
}

/// Sends the next fragment of a stream. Returns false if there is no room; a `room` event follows.
bool Rc::send_fragment(RcConnection& connection, OutStream& stream) {
    const OutStream::StreamSource& source = stream.source();
    const StreamRange range = stream.peek(connection.frame_limit_ - sizeof(RcPiece));
    const std::byte* data = source.memory + range.begin;
    if (!source.memory) {
        if (packed_bytes_ < connection.frame_limit_) {
            packed_ = std::make_unique_for_overwrite<std::byte[]>(connection.frame_limit_);
            packed_bytes_ = connection.frame_limit_;
        }
        source.pack(source.user, range.begin, packed_.get(), range.bytes());
        data = packed_.get();
    }
    RcPiece head;
    head.frame.kind = RcFrame::RcFrameKind::fragment;
    head.frame.bytes = static_cast<uint32_t>(range.bytes());
    head.serial = source.serial;
    head.generation = source.generation;
    head.offset = range.begin;
    const iovec parts[] = {{&head, sizeof head}, {const_cast<std::byte*>(data), range.bytes()}};
    if (post(connection, parts, 2) != verbs::WorkStatus::done) return false;
    (void)stream.extract(kPath, range.bytes());
    ++counters_.fragments_sent;
    counters_.fragment_bytes_sent += range.bytes();
    if (stream.has_work()) return true;
    StreamList::remove(&stream);
    connection.waiting_.push_back(&stream);
    return true;
}

void Rc::add_stream(Connection& one, OutStream& stream) {
    RcConnection& connection = of(one);
    stream.connection = &one;
    if (connection.state_ != Connection::CarrierState::open || connection.finished_) {
        connection.waiting_.push_back(&stream);
        return upcalls_.stranded(stream);
    }
    (stream.has_work() ? connection.working_ : connection.waiting_).push_back(&stream);
    pump(connection);
}

// Removes a stream. The queue has copied the data that it accepted, so no fragment needs the stream's memory.
void Rc::remove_stream(OutStream& stream, bool) {
    stream.hook.unlink();
    stream.connection = nullptr;
}

void Rc::strand(RcConnection& connection) {
    network::strand(connection.working_, connection.waiting_, connection.state_ != Connection::CarrierState::open, upcalls_);
}

}  // namespace starling::network
