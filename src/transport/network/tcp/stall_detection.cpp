// Detects whether sent data arrives: sockets whose peer has failed, and connections that stall. The kernel retransmits by its own timer, a
// fifth of a second on most machines; a session does so after one round trip. So a connection that stalls or loses much returns all its
// data to the session and the streams. It is not used again until it has delivered what it had.
#include <algorithm>

#include "transport/network/session/session.h"
#include "transport/network/tcp/engine.h"
#include "transport/network/tcp/socket.h"

namespace starling::network {

namespace {

constexpr uint64_t kHealthNs = 250'000'000;
constexpr uint64_t kStreamLookNs = 2'000'000;  ///< ns between health checks while streams wait for data that sockets have taken
constexpr uint64_t kDoubtLookNs = 50'000'000;  ///< ns between checks whether a paused connection has delivered its data
constexpr uint64_t kLongestDoubt = 16;         ///< longest pause, as a multiple of the first
constexpr uint64_t kForgiven = 8;  ///< pauses start short again after this multiple of the last pause without a stall
/// Patience (ns) while the kernel repairs a loss: it detects the loss of a retransmission only by its slow timer.
constexpr uint64_t kRepairPatienceNs = 6'000'000;
/// Share of retransmitted segments (1/kRepeatedShare, at least kRepeatedMost) above which datagrams do better. An exception is a link that
/// is merely full, where the round trip is over kFullWay times the minimum.
constexpr uint64_t kRepeatedMost = 2, kRepeatedShare = 1000, kFullWay = 4;

bool carries_streams(ConnectionParts& of) { return !of.working.empty() || !of.waiting.empty(); }

}  // namespace

Health TcpEngine::query_kernel(const TcpSocket& socket) const {
    return (options.examine ? options.examine : examine)(socket.fd, options.silence_limit_ns);
}

/// Schedules a health check, because something was written.
void TcpEngine::unsettle(TcpSocket& socket) {
    const uint64_t look = now + (carries_streams(parts(*socket.connection)) ? kStreamLookNs : kHealthNs);
    if (!socket.unsettled) {
        socket.unsettled = true;
        socket.acked_at = now;
        socket.queried_at = 0;
        socket.deadline = look;
    }
    socket.deadline = std::min(socket.deadline, look);
    arm(socket.deadline);
}

void TcpEngine::watch_socket(TcpSocket& socket) {
    if (now >= socket.retry_at) {
        socket.retry_at = UINT64_MAX;
        if (socket.blocked) on_writable(socket);
    }
    arm(socket.retry_at);
    if (!socket.unsettled) return;
    if (now >= socket.deadline) check_health(socket);
    if (socket.unsettled) arm(socket.deadline);
}

void TcpEngine::check_health(TcpSocket& socket) {
    Connection& connection = *socket.connection;
    const Health health = query_kernel(socket);
    socket.unsettled = health.outstanding || health.unsent;
    socket.deadline = now + kHealthNs;
    if (health.silent)
        return doom(socket, std::string("no answer from ") + print_address(socket.rail.remote, 0) +
                                " to the data sent: its host, or the network to it, is down");
    if (connection.paused_ || connection.finished_ || !carries_streams(parts(connection))) return;
    if (loses_much(socket, health) || is_stuck(socket, health)) return pause(connection);
    // A peer that does not answer may be computing, so check less often. The interval stays below kAwayNs: otherwise a process that sleeps
    // between two checks would seem to have been stopped.
    const uint64_t asked_for = socket.queried_at != 0 ? now - socket.queried_at : 0;
    socket.deadline = now + std::clamp(asked_for, kStreamLookNs, kAwayNs / 2);
}

/// Restarts the stall checks after this process has not polled for long; perhaps it was stopped. Answers from before prove nothing about
/// data that arrived since, so each connection is checked, and its peer queried, again.
void TcpEngine::resume() {
    back_at = now;
    for (auto& socket : sockets) {
        socket->queried_at = 0;
        socket->acked_at = now;
    }
}

bool TcpEngine::loses_much(const TcpSocket& socket, const Health& health) const {
    const uint64_t repeated = health.repeated - socket.repeated_before, sent = health.sent - socket.sent_before;
    return repeated >= kRepeatedMost && repeated * kRepeatedShare > sent &&
           health.round_trip < kFullWay * health.least_round_trip;
}

/// Returns whether nothing more arrives at the peer's host although the peer polls its sockets, and so would have read it.
bool TcpEngine::is_stuck(TcpSocket& socket, const Health& health) {
    if (!health.unacknowledged || health.acked != socket.acked) {
        socket.acked = health.acked;
        socket.acked_at = now;
        socket.queried_at = 0;
        return false;
    }
    // Use the session's round-trip time: the kernel's includes the time for which the peer delayed acknowledgements.
    const Session* const session = socket.connection->session;
    const uint64_t patience = (health.repairs ? std::min(options.patience_ns, kRepairPatienceNs) : options.patience_ns) +
                              (session ? 2 * session->round_trip() : 0);
    const uint64_t silent = now - socket.acked_at;
    if (silent >= patience && health.timed_out) return true;
    if (silent < patience / 2 || !session || !upcalls.request_ack) return false;
    if (socket.queried_at == 0) {
        socket.queried_at = now;
        upcalls.request_ack(*socket.connection);
    }
    if (session->answered_at() <= socket.queried_at) return false;
    // Wait half the patience after the answer: a peer that resumes after a pause answers a datagram first, and reads the connection
    // afterwards.
    if (socket.answered_at < socket.queried_at) socket.answered_at = now;
    return silent >= patience && now - socket.answered_at >= patience / 2;
}

/// Returns whether the connection stalls. The session calls this function when the peer has answered a query, but has not received the
/// frames.
bool TcpEngine::stalls(Connection& connection) {
    if (back_at != 0 && now - back_at < kAwayNs) return false;  // the peer's answer may be older than this process's pause
    ConnectionParts& of = parts(connection);
    if (connection.paused_ || !of.primary) return connection.paused_;
    TcpSocket& socket = *of.primary;
    const Health health = query_kernel(socket);
    const bool as_before =
        socket.queried_at != 0 && health.acked == socket.acked && now - socket.queried_at > options.patience_ns;
    if (health.acked != socket.acked || socket.queried_at == 0) socket.queried_at = now;
    if (!health.unacknowledged) socket.queried_at = 0;
    socket.acked = health.acked;
    // The connection is slow, not stuck, if it progresses or all data has reached the peer's host, whose process will read the data.
    if (!health.unacknowledged || !(as_before || health.timed_out)) return false;
    pause(connection);
    return true;
}

/// Stops using the connection, and withdraws the stream data that its sockets have taken, which may be delayed for long. The session
/// retransmits its frames by itself.
void TcpEngine::pause(Connection& connection) {
    ConnectionParts& of = parts(connection);
    if (connection.paused_ || connection.state_ != Connection::CarrierState::open) return;
    if (of.pause == 0 || now - of.trusted_since > kForgiven * of.pause)
        of.pause = options.pause_ns;
    else
        of.pause = std::min(2 * of.pause, kLongestDoubt * options.pause_ns);
    connection.paused_ = true;
    of.pause_ends = now + of.pause;
    arm(of.pause_ends);
    ++counters.paused;
    if (upcalls.paused) upcalls.paused(connection);
    for (const TcpSocket* socket : of.sockets)
        for (StreamList* list : {&of.working, &of.waiting})
            for (OutStream* stream = list->front(); stream; stream = list->next(stream)) stream->lose(socket->path);
    strand(connection);
}

void TcpEngine::watch_pause(Connection& connection) {
    ConnectionParts& of = parts(connection);
    if (!connection.paused_ || connection.state_ != Connection::CarrierState::open) return;
    if (now >= of.pause_ends) {
        if (has_delivered(of)) return trust(connection);
        of.pause_ends = now + kDoubtLookNs;
    }
    arm(of.pause_ends);
}

bool TcpEngine::has_delivered(const ConnectionParts& of) const {
    return std::all_of(of.sockets.begin(), of.sockets.end(), [&](const TcpSocket* socket) {
        if (socket->state != TcpSocket::TcpState::open) return true;
        const Health health = query_kernel(*socket);
        return !health.unacknowledged && !health.unsent && !socket->writer.busy();
    });
}

void TcpEngine::trust(Connection& connection) {
    ConnectionParts& of = parts(connection);
    connection.paused_ = false;
    of.pause_ends = UINT64_MAX;
    of.trusted_since = now;
    for (TcpSocket* socket : of.sockets) {
        const Health health = query_kernel(*socket);
        socket->sent_before = health.sent;
        socket->repeated_before = health.repeated;
        socket->queried_at = 0;
    }
    if (upcalls.trusted) upcalls.trusted(connection);
    std::vector<OutStream*> left;
    for (OutStream* stream = of.waiting.front(); stream; stream = of.waiting.next(stream))
        if (stream->has_work()) left.push_back(stream);
    for (OutStream* stream : left) {
        StreamList::remove(stream);
        of.working.push_back(stream);
    }
    pump(connection);
}

}  // namespace starling::network
