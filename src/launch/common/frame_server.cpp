#include "launch/common/frame_server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "control/local_socket.h"

namespace starling::launch {

namespace {
constexpr std::chrono::seconds kTimeToProve{5};
constexpr size_t kMaxConnections = 16384;
constexpr int kBacklog = 1024;  ///< connections that the kernel queues for a listener
constexpr size_t kPiece = 64 * 1024;
}  // namespace

FrameServer::~FrameServer() {
    for (const int listener : {listener_, doors_.file(), doors_.abstract()})
        if (listener >= 0) loop_.forget(listener);
    if (listener_ >= 0) close(listener_);
    for (auto& [id, connection] : connections_) {
        loop_.forget(connection.fd);
        loop_.cancel(connection.deadline);
        close(connection.fd);
    }
}

bool FrameServer::listen(std::string_view name) {
    listener_ = control::listen_local(name);
    return listener_ >= 0 && watch(listener_, SocketKind::abstract);
}

bool FrameServer::listen_at(const control::WellKnownSocket& meeting) {
    anywhere_ = meeting.anywhere;
    return doors_.open(meeting) && (doors_.file() < 0 || watch(doors_.file(), SocketKind::meeting_file)) &&
           (doors_.abstract() < 0 || watch(doors_.abstract(), SocketKind::meeting_abstract));
}

bool FrameServer::watch(int listener, SocketKind door) {
    return loop_.watch(listener, EPOLLIN, [this, listener, door](uint32_t) { on_connect(listener, door); });
}

bool FrameServer::admits(int fd, SocketKind door) const {
    if (connections_.size() >= kMaxConnections) return false;
    return door == SocketKind::meeting_abstract ? control::is_own_peer(fd, anywhere_) : control::is_trusted_peer(fd);
}

/// Accepts one connection. Returns whether there was one.
bool FrameServer::on_connect(int listener, SocketKind door) {
    const int fd = loop_.accept(listener);
    if (fd < 0) return false;
    if (!admits(fd, door)) {
        close(fd);
        return true;
    }
    const ConnectionId id = ++last_id_;
    FrameConnection& connection = connections_[id];
    connection.fd = fd;
    connection.deadline = loop_.after(kTimeToProve, [this, id] {
        connections_[id].deadline = 0;
        hang_up(id);
    });
    if (trusts_everyone_) trust(id);
    loop_.watch(fd, EPOLLIN, [this, id](uint32_t events) { on_ready(id, events); });
    return true;
}

void FrameServer::handle_pending_frames() {
    for (int peers = 0; listener_ >= 0 && peers < kBacklog && on_connect(listener_, SocketKind::abstract); ++peers) {}
    std::vector<ConnectionId> ids;
    for (const auto& [id, connection] : connections_) ids.push_back(id);
    for (const ConnectionId id : ids) {
        // Read from each connection while it has data, but at most kMaxFrame bytes, so that the loop ends.
        for (uint32_t taken = 0; taken < control::kMaxFrame / kPiece; ++taken) {
            const auto found = connections_.find(id);
            if (found == connections_.end()) break;
            pollfd ready{found->second.fd, POLLIN, 0};
            if (poll(&ready, 1, 0) <= 0) break;
            on_ready(id, EPOLLIN);
        }
    }
}

void FrameServer::on_ready(ConnectionId id, uint32_t events) {
    if ((events & EPOLLOUT) && !flush(id)) return;
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !receive(id)) hang_up(id);
}

bool FrameServer::receive(ConnectionId id) {
    static thread_local char buffer[kPiece];  // a user may limit stacks to 64 KB
    const ssize_t n = recv(connections_[id].fd, buffer, sizeof buffer, 0);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    connections_[id].decoder.feed({buffer, static_cast<size_t>(n)});
    for (;;) {
        control::ControlFrame frame;
        // Look the connection up each time: the handler may have sent, and a failed send closes the connection.
        const auto found = connections_.find(id);
        if (found == connections_.end()) return true;
        switch (found->second.decoder.next(frame)) {
            case control::FrameDecoder::ControlDecodeResult::need_more:
                return true;
            case control::FrameDecoder::ControlDecodeResult::garbage:
                return false;
            case control::FrameDecoder::ControlDecodeResult::frame:
                break;
        }
        if (!on_frame_(id, frame)) return false;
    }
}

void FrameServer::trust(ConnectionId id) {
    FrameConnection& connection = connections_[id];
    connection.decoder.set_max_payload(control::kMaxFrame);
    loop_.cancel(connection.deadline);
    connection.deadline = 0;
}

void FrameServer::send(ConnectionId id, control::MessageKind kind, std::string_view payload) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    found->second.outgoing += control::encode_frame(kind, payload);
    flush(id);
}

bool FrameServer::flush(ConnectionId id) {
    FrameConnection& connection = connections_[id];
    while (!connection.outgoing.empty()) {
        const ssize_t n = ::send(connection.fd, connection.outgoing.data(), connection.outgoing.size(), MSG_NOSIGNAL);
        if (n > 0) {
            connection.outgoing.erase(0, static_cast<size_t>(n));
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            hang_up(id);
            return false;
        }
    }
    loop_.change(connection.fd, connection.outgoing.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT);
    return true;
}

void FrameServer::hang_up(ConnectionId id) {
    const auto found = connections_.find(id);
    if (found == connections_.end()) return;
    loop_.forget(found->second.fd);
    loop_.cancel(found->second.deadline);
    close(found->second.fd);
    connections_.erase(found);
    on_close_(id);
}

}  // namespace starling::launch
