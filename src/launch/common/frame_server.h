// A listening local socket and its connections, which carry frames. The server closes connections of other users, connections that send
// garbage, and connections that never prove their identity. Other connections are not affected.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "control/control_protocol.h"
#include "control/well_known_socket.h"
#include "launch/common/event_loop.h"

namespace starling::launch {

class FrameServer {
  public:
    using ConnectionId = uint64_t;
    /// Handles one frame. Returns false to close the connection.
    using FrameHandler = std::function<bool(ConnectionId, const control::ControlFrame&)>;
    using CloseHandler = std::function<void(ConnectionId)>;

    FrameServer(EventLoop& loop, FrameHandler on_frame, CloseHandler on_close)
        : loop_(loop), on_frame_(std::move(on_frame)), on_close_(std::move(on_close)) {}
    FrameServer(const FrameServer&) = delete;
    FrameServer& operator=(const FrameServer&) = delete;
    ~FrameServer();

    /// Listens on an abstract socket, whose peers must each prove their identity. Returns false and sets errno on failure.
    bool listen(std::string_view name);
    /// Listens on a well-known socket, as WellKnownListener::open() does.
    bool listen_at(const control::WellKnownSocket& meeting);

    /// Trusts every peer at once, for servers that only require that the peer is the same user.
    void trust_everyone() { trusts_everyone_ = true; }
    /// Accepts long frames from this peer and removes its deadline, because the peer has proved its identity.
    void trust(ConnectionId id);
    /// Queues a frame. Does nothing if the connection is closed.
    void send(ConnectionId id, control::MessageKind kind, std::string_view payload);
    /// Reads and handles all frames that have already arrived. To be called before acting on a peer's death, so that the peer's last
    /// message is handled first.
    void handle_pending_frames();
    size_t connections() const { return connections_.size(); }

  private:
    struct FrameConnection {
        int fd = -1;
        control::FrameDecoder decoder;
        std::string outgoing;
        EventLoop::TimerId deadline = 0;  ///< timer that closes the connection if the peer has not proved its identity by then
    };

    enum class SocketKind { abstract, meeting_file, meeting_abstract };

    bool watch(int listener, SocketKind door);
    bool on_connect(int listener, SocketKind door);
    bool admits(int fd, SocketKind door) const;
    void on_ready(ConnectionId id, uint32_t events);
    bool receive(ConnectionId id);
    bool flush(ConnectionId id);
    void hang_up(ConnectionId id);

    EventLoop& loop_;
    FrameHandler on_frame_;
    CloseHandler on_close_;
    int listener_ = -1;
    control::WellKnownListener doors_;
    bool anywhere_ = false;  ///< true: accepts the user's processes in other containers (WellKnownSocket::anywhere)
    bool trusts_everyone_ = false;
    ConnectionId last_id_ = 0;
    std::unordered_map<ConnectionId, FrameConnection> connections_;
};

}  // namespace starling::launch
