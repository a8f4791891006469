// Opening and closing of RC connections.
#include "transport/network/rdma/rc_connection.h"

#include <algorithm>
#include <cstring>

#include "base/counter_start.h"
#include "base/error.h"
#include "mpi.h"

namespace starling::network {

namespace {

verbs::QueueAddress address_of(const RcOffer& offer) {
    verbs::QueueAddress address;
    std::memcpy(address.gid, offer.gid_front, sizeof offer.gid_front);
    std::memcpy(address.gid + sizeof offer.gid_front, offer.gid_back, sizeof offer.gid_back);
    address.queue = offer.queue;
    address.first = offer.first;
    address.lid = offer.lid;
    address.mtu_log = offer.mtu_log;
    address.reads = static_cast<uint8_t>(offer.reads);
    return address;
}

RcOffer offer_of(const verbs::QueueAddress& address) {
    RcOffer offer;
    std::memcpy(offer.gid_front, address.gid, sizeof offer.gid_front);
    std::memcpy(offer.gid_back, address.gid + sizeof offer.gid_front, sizeof offer.gid_back);
    offer.queue = address.queue & 0xffffff;
    offer.first = address.first & 0xffffff;
    offer.lid = address.lid;
    offer.mtu_log = address.mtu_log;
    offer.reads = address.reads;
    offer.version = kRcVersion;
    return offer;
}

RcOffer read_offer(const std::byte* payload) {
    RcOffer offer;
    std::memcpy(&offer, payload, sizeof offer);
    return offer;
}

}  // namespace

RcConnection::RcConnection(Rc& by, RcPort& port) : Connection(by), port_(&port), frame_limit_(port.port().frame_limit()) {}

Rc::~Rc() {
    for (auto* list : {&connections_, &leaving_})
        for (auto& connection : *list) {
            for (auto* streams : {&connection->working_, &connection->waiting_})
                while (OutStream* stream = streams->pop_front()) stream->connection = nullptr;
            release(*connection);
        }
    while (RcArrival* const one = lost_.front()) cancel_rdma_target(*one->target, false);
}

// Returns whether the offer is for RC: the high bit of the version distinguishes RC from TCP, also in later versions.
bool Rc::is_offer(const std::byte* offer) { return read_offer(offer).version & 0x80; }

RcConnection& Rc::add(const ProcessId& peer, void* user, Session* session, uint8_t place, verbs::Port& port) {
    RcConnection& connection = *connections_.emplace_back(std::make_unique<RcConnection>(*this, memory_of(place, port)));
    connection.peer = peer;
    connection.user = user;
    connection.session = session;
    return connection;
}

int Rc::make_queue(RcConnection& connection) {
    if (connection.queue_) return MPI_SUCCESS;
    if (connection.port_->forgotten())
        return fail(MPI_ERR_OTHER,
                    "the InfiniBand or RoCE port of the connection was closed before its queue pair was created");
    connection.queue_ = connection.port().make_queue(&connection);
    if (connection.queue_) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER, "cannot create a queue pair on %s: %s", connection.port().facts().device,
                connection.port().problem());
}

int Rc::connect(RcConnection& connection, const verbs::QueueAddress& theirs, uint8_t place) {
    connection.theirs_ = theirs;
    connection.their_place_ = place;
    connection.state_ = Connection::CarrierState::dialling;
    if (connection.queue_->connect(theirs)) return MPI_SUCCESS;
    return fail(MPI_ERR_OTHER, "%s can't connect to the peer's queue: %s", connection.port().facts().device,
                connection.port().problem());
}

int Rc::describe(Connection& one, packet::PacketKind kind, std::byte* payload, uint32_t& bytes) {
    RcConnection& connection = of(one);
    const bool asks = kind == packet::PacketKind::open;
    bytes = 0;
    if (asks)
        if (const int error = make_queue(connection)) return error;
    if (!connection.queue_) return MPI_SUCCESS;  // the connection failed, and link will refuse the request
    RcOffer offer = offer_of(connection.queue_->address());
    offer.place = connection.port_->place();
    if (!asks) offer.answers = connection.theirs_.queue;
    if (connection.state_ == Connection::CarrierState::idle) connection.state_ = Connection::CarrierState::waiting;
    std::memcpy(payload, &offer, bytes = sizeof offer);
    return MPI_SUCCESS;
}

int Rc::use(Connection& one, packet::PacketKind kind, const std::byte* payload) {
    RcConnection& connection = of(one);
    const RcOffer offer = read_offer(payload);
    if (offer.version != kRcVersion)
        return fail(MPI_ERR_OTHER,
                    "the peer offers version %u of the connection protocol and this process has version %u; "
                    "use one version of Starling",
                    offer.version & 0x7f, kRcVersion & 0x7f);
    if (offer.queue == 0) return fail(MPI_ERR_OTHER, "the peer's offer of a connection has no queue number");
    const verbs::QueueAddress theirs = address_of(offer);
    const auto place = static_cast<uint8_t>(offer.place);
    const bool waits = connection.state_ == Connection::CarrierState::waiting;
    if (kind == packet::PacketKind::open) {
        if (!waits && connection.state_ != Connection::CarrierState::idle) return MPI_SUCCESS;
        connection.crossed_ = waits;
        if (const int error = make_queue(connection)) return error;
        if (const int error = connect(connection, theirs, place)) return error;
        if (!waits) return MPI_SUCCESS;  // not waiting: link/connection will send our accept
        std::byte accept[sizeof offer];
        uint32_t bytes = 0;
        (void)describe(connection, packet::PacketKind::accept, accept, bytes);
        notify_(connection, packet::PacketKind::accept, accept, bytes);
        return MPI_SUCCESS;
    }
    // An accept for an earlier queue of this side is late; ignore it, since another accept answers the current queue.
    if (!connection.queue_ || offer.answers != connection.queue_->address().queue) return MPI_SUCCESS;
    if (waits) {
        if (const int error = connect(connection, theirs, place)) return error;
    } else if (!connection.crossed_ || !(theirs.queue == connection.theirs_.queue)) {
        return MPI_SUCCESS;
    }
    send_hello(connection);
    return MPI_SUCCESS;
}

void Rc::send_hello(RcConnection& connection) {
    if (connection.greets_ || !connection.queue_) return;
    connection.greets_ = true;
    connection.hello_pending_ = send_frame(connection, RcFrame::RcFrameKind::hello) == verbs::WorkStatus::busy;
}

void Rc::on_hello(RcConnection& connection) {
    if (connection.state_ != Connection::CarrierState::dialling) return;
    send_hello(connection);
    connection.state_ = Connection::CarrierState::open;
    ++counters_.opened;
    seek_ring(connection);
    upcalls_.opened(connection);
}

void Rc::report_closed(RcConnection& connection) {
    if (!connection.queue_ || connection.theirs_.queue == 0) return;
    const QueuePair pair{connection.queue_->address().queue, connection.theirs_.queue};
    notify_(connection, packet::PacketKind::wire_lost, &pair, sizeof pair);
}

void Rc::release(RcConnection& connection) {
    if (connection.queue_) connection.queue_->close(false);
    connection.queue_ = nullptr;
    end_all(connection);
    lose_arrivals(connection);
    drop_ring_in(connection);
    if (connection.ring_out_) old_rings_.push_back(std::move(connection.ring_out_));
    connection.room_wanted_ = connection.finish_pending_ = connection.hello_pending_ = connection.left_pending_ = false;
    connection.frames_in_ = connection.frames_out_ = kCounterStart;
}

void Rc::broke(RcConnection& connection, const std::string& why) {
    if (connection.state_ == Connection::CarrierState::dropped) {
        // The connection was dropped, and only its finish frame was still to be sent.
        release(connection);
        const auto place = std::find_if(leaving_.begin(), leaving_.end(), [&](auto& one) { return one.get() == &connection; });
        if (place == leaving_.end()) return;
        forgotten_.push_back(std::move(*place));
        leaving_.erase(place);
        return;
    }
    if (!connection.queue_) return;
    const bool was_open = connection.state_ == Connection::CarrierState::open;
    report_closed(connection);
    release(connection);
    connection.state_ = Connection::CarrierState::idle;
    ++(was_open ? counters_.broken : counters_.failed);
    fail(MPI_ERR_OTHER, "%s", why.c_str());
    strand(connection);
    (was_open ? upcalls_.broken : upcalls_.failed)(connection);
}

void Rc::drop(Connection& one) {
    RcConnection& connection = of(one);
    if (connection.state_ == Connection::CarrierState::dropped) return;
    connection.state_ = Connection::CarrierState::dropped;
    std::erase(to_pump_, &connection);
    strand(connection);
    const auto place =
        std::find_if(connections_.begin(), connections_.end(), [&](auto& entry) { return entry.get() == &connection; });
    // Close the queue at once: one that lingers would still receive RDMA writes into memory that is released now.
    if ((connection.ring_in_ || !connection.expected_.empty()) && !connection.finish_received_) {
        report_closed(connection);
        connection.finish_pending_ = connection.finish_sent_ = false;
    }
    lose_arrivals(connection);
    auto& next = connection.finish_pending_ ? leaving_ : forgotten_;
    if (!connection.finish_pending_ && connection.finish_sent_ && connection.queue_) {
        connection.queue_->close(true);
        connection.queue_ = nullptr;
    }
    if (!connection.finish_pending_) release(connection);
    next.push_back(std::move(*place));
    connections_.erase(place);
}

void Rc::lose_remote_queue(Connection& one, const QueuePair& pair) {
    RcConnection& connection = of(one);
    if (!connection.queue_ || connection.theirs_.queue != pair.of_sender) return;
    if (connection.queue_->address().queue != pair.of_receiver) return;
    connection.theirs_.queue = 0;  // so that no wire_lost is sent back
    broke(connection, "the peer's queue is in error, or its port is down");
}

void Rc::lose_port(verbs::Port& port, bool closed) {
    std::vector<RcConnection*> lost;
    for (auto* list : {&connections_, &leaving_})
        for (auto& connection : *list)
            if (&connection->port() == &port && connection->queue_) lost.push_back(connection.get());
    for (RcConnection* connection : lost) broke(*connection, std::string(port.facts().device) + " is down");
    if (!closed) return;
    const auto place = std::find_if(ports_.begin(), ports_.end(), [&](auto& one) { return &one->port() == &port; });
    if (place == ports_.end()) return;
    gone_.push_back(std::move(*place));
    ports_.erase(place);
    gone_.back()->forget_memory();
}

bool Rc::poll() {
    forgotten_.clear();
    old_rings_.clear();
    bool any = report_ended();
    any |= report_lost();
    if (to_pump_.empty()) return any;
    const std::vector<RcConnection*> due = std::move(to_pump_);
    to_pump_.clear();
    for (RcConnection* connection : due) {
        connection->to_pump_ = false;
        if (connection->state_ == Connection::CarrierState::open) pump(*connection);
    }
    return true;
}

}  // namespace starling::network
