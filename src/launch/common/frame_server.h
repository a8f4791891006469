// A listening local socket and its connections, as frames. Foreign users, garbage, and peers that never say
// who they are get hung up on; nobody else notices.
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
    /// Returns false to hang up.
    using FrameHandler = std::function<bool(ConnectionId, const control::Frame&)>;
    using CloseHandler = std::function<void(ConnectionId)>;

    FrameServer(EventLoop& loop, FrameHandler on_frame, CloseHandler on_close)
        : loop_(loop), on_frame_(std::move(on_frame)), on_close_(std::move(on_close)) {}
    FrameServer(const FrameServer&) = delete;
    FrameServer& operator=(const FrameServer&) = delete;
    ~FrameServer();

    /// At an abstract name, where each peer proves who it is. False with errno.
    bool listen(std::string_view name);
    /// At a meeting, as WellKnownListener::open().
    bool meet(const control::WellKnownSocket& meeting);

    /// For those who have nothing to prove but that they are the same user: each peer is trusted at once.
    void trust_everyone() { trusts_everyone_ = true; }
    /// The peer has proved who it is: long frames are taken, and it may be silent for as long as it likes.
    void trust(ConnectionId id);
    /// Queues a frame. Nothing happens if the connection is gone.
    void send(ConnectionId id, control::MessageKind kind, std::string_view payload);
    /// Takes what has come and was not looked at yet, for who is about to act on a peer's death: its last word comes before that.
    void take_what_has_come();
    size_t connections() const { return connections_.size(); }

  private:
    struct Connection {
        int fd = -1;
        control::FrameDecoder decoder;
        std::string outgoing;
        EventLoop::TimerId deadline = 0;  ///< to prove who it is
    };

    enum class Door { abstract, meeting_file, meeting_abstract };

    bool watch(int listener, Door door);
    bool on_connect(int listener, Door door);
    bool admits(int fd, Door door) const;
    void on_ready(ConnectionId id, uint32_t events);
    bool receive(ConnectionId id);
    bool flush(ConnectionId id);
    void hang_up(ConnectionId id);

    EventLoop& loop_;
    FrameHandler on_frame_;
    CloseHandler on_close_;
    int listener_ = -1;
    control::WellKnownListener doors_;
    bool anywhere_ = false;  ///< WellKnownSocket::anywhere
    bool trusts_everyone_ = false;
    ConnectionId last_id_ = 0;
    std::unordered_map<ConnectionId, Connection> connections_;
};

}  // namespace starling::launch
