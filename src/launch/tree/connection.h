// One TCP connection between two daemons: the handshake, then sealed frames in both directions, and heartbeats.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "launch/common/event_loop.h"
#include "launch/tree/frame.h"
#include "launch/tree/handshake.h"
#include "launch/tree/messages.h"

namespace starling::launch {

/// A frame to be sent. Its body consists of head, payload of the content, and tail.
struct OutgoingFrame {
    TreeFrameKind kind = TreeFrameKind::heartbeat;
    std::string head;
    std::shared_ptr<const Content> content;  ///< message whose payload is the middle part of the body; null: no middle part
    std::string tail;
};

/// Sets the options of a TCP socket between daemons: a segment leaves at once, and its retransmissions do not double their timeout while
/// little is in flight, so that a lost one delays a start or a death notice by a few tenths of a second. No timeout is longer than 1 s: a
/// lost SYN sets the first one to 3 s, so three lost repeats would be a silence that counts as death. Call it before connect().
void tune_socket(int fd);

/// A connection must not be destroyed within its own handlers: close() it there, and destroy it later.
class TreeConnection {
  public:
    using Clock = EventLoop::Clock;
    struct Handlers {
        std::function<void()> on_open;  ///< called when the peer has proved that it holds the key
        std::function<void(TreeFrameKind, std::string& body)> on_frame;
        std::function<void(const std::string& why)> on_close;  ///< called when the connection is lost; not after close()
        /// Called for the next frame when there is room. Returns false if there is none.
        std::function<bool(OutgoingFrame&)> pull;
    };

    /// Takes ownership of `fd`, which must be connected and non-blocking.
    TreeConnection(EventLoop& loop, int fd, Handshake::HandshakeRole role, const TreeCredentials& credentials,
                   Handlers handlers);
    TreeConnection(const TreeConnection&) = delete;
    TreeConnection& operator=(const TreeConnection&) = delete;
    ~TreeConnection();

    void set_handlers(Handlers handlers) { handlers_ = std::move(handlers); }

    /// Queues a frame before all frames that pull() has not returned yet. The body may be empty.
    void send(TreeFrameKind kind, std::string body);
    /// Announces that pull() has a frame to return. Writes at the end of the current loop iteration.
    void pump();
    /// Writes as much as the kernel accepts and closes the connection, without calling on_close.
    void close();
    /// Closes the connection after an error, and calls on_close with its reason. Announces to the peer that this daemon lives.
    void lose(const std::string& why);
    /// As lose(), for a peer whose host does not answer.
    void lose_silent(const std::string& why);

    bool is_open() const { return fd_ >= 0 && sealer_.has_value(); }
    bool is_closed() const { return fd_ < 0; }
    bool all_written() const { return parts_.empty(); }
    Clock::time_point last_received() const { return last_received_; }
    Clock::time_point last_sent() const { return last_sent_; }
    void forgive() { last_received_ = Clock::now(); }  ///< restarts the silence timeout after a suspension of this process
    /// Adds `passed` to the silence of the peer's host, or ends the silence if its kernel owes no acknowledgement or has sent one since the
    /// last call. Call it often, and send something in between.
    void count_host_silence(Clock::time_point now, Clock::duration passed);
    Clock::duration host_silence() const { return host_silence_; }
    /// Returns this machine's IPv4 address of the connection, in network order: the link that it uses. 0 if it is not known.
    uint32_t own_address() const;
    /// What the end of the connection shows about the peer.
    enum class PeerLoss : uint8_t {
        none,    ///< nothing: the peer may live, and connect again
        silent,  ///< the peer's host does not answer on this connection
        ended,   ///< the peer's daemon has ended: a living one announces that it closes a connection
    };
    PeerLoss peer_loss() const { return peer_loss_; }

  private:
    struct SendPart {
        std::string own;
        std::shared_ptr<const Content> content;  ///< message whose payload is sent in place of `own`; null: `own` is sent
        std::string_view view() const { return content ? content->payload : std::string_view(own); }
    };

    void on_ready(uint32_t events);
    void receive();
    bool handle_bytes(std::string_view bytes);
    bool handle_hello(std::string_view& bytes);
    void add(OutgoingFrame frame);
    void flush();
    bool refill();
    bool write_some();
    void watch_for_room(bool wanted);
    void hang_up();
    void end_by_peer(const std::string& why);

    EventLoop& loop_;
    int fd_;
    Handlers handlers_;
    Handshake handshake_;
    std::optional<FrameSealer> sealer_;  ///< seals outgoing frames; set after the handshake
    std::optional<FrameOpener> opener_;
    std::deque<SendPart> parts_;
    size_t queued_ = 0;   ///< number of bytes in parts_ that are not written yet
    size_t written_ = 0;  ///< bytes of the first of parts_ that are written
    bool wants_room_ = false;
    EventLoop::TimerId flush_timer_ = 0;
    Clock::time_point last_received_ = Clock::now(), last_sent_ = last_received_, last_counted_ = last_received_;
    Clock::duration host_silence_{0};
    bool peer_has_parted_ = false;  ///< true: the peer has announced that it closes the connection
    PeerLoss peer_loss_ = PeerLoss::none;
};

}  // namespace starling::launch
