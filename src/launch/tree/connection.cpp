#include "launch/tree/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/linux_calls.h"

namespace starling::launch {

namespace {

constexpr size_t kWriteAhead = 256 * 1024;  // limit of sealed bytes to be written, which no other frame can overtake
constexpr size_t kReadAtOnce = 256 * 1024;  // limit of bytes to read before other connections are served
constexpr int kMaxPieces = 64;

}  // namespace

void tune_socket(int fd) {
    const int on = 1, longest_ms = 1000, give_up_ms = 900'000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_RTO_MAX_MS, &longest_ms, sizeof longest_ms);
    // Else the kernel would end a connection after 15 timeouts, some 15 s. The tree itself decides how long a silence may last.
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms, sizeof give_up_ms);
}

TreeConnection::TreeConnection(EventLoop& loop, int fd, Handshake::HandshakeRole role, const TreeCredentials& credentials,
                               Handlers handlers)
    : loop_(loop), fd_(fd), handlers_(std::move(handlers)), handshake_(role, credentials) {
    loop_.watch(fd_, EPOLLIN, [this](uint32_t events) { on_ready(events); });
    if (std::string opening = handshake_.opening(); !opening.empty()) {
        queued_ += opening.size();
        parts_.push_back({std::move(opening), nullptr});
        pump();
    }
}

TreeConnection::~TreeConnection() { hang_up(); }

void TreeConnection::hang_up() {
    if (fd_ < 0) return;
    loop_.forget(fd_);
    if (flush_timer_ != 0) loop_.cancel(flush_timer_);
    flush_timer_ = 0;
    ::close(fd_);
    fd_ = -1;
}

void TreeConnection::close() {
    if (fd_ < 0) return;
    if (sealer_) write_some();
    hang_up();
}

void TreeConnection::lose(const std::string& why) {
    if (fd_ < 0) return;
    if (sealer_) {
        add({TreeFrameKind::parting, {}, nullptr, {}});
        while (!parts_.empty() && write_some()) {}
    }
    hang_up();
    const auto tell = handlers_.on_close;  // a copy, because the call may replace the handlers
    if (tell) tell(why);
}

void TreeConnection::lose_silent(const std::string& why) {
    peer_loss_ = PeerLoss::silent;
    lose(why);
}

// Loses a connection that the peer's kernel has ended. The daemon has ended too, unless it has announced to live, or has closed the
// connection in the middle of a frame: then the announcement had no room behind the frame.
void TreeConnection::end_by_peer(const std::string& why) {
    if (opener_ && !peer_has_parted_ && opener_->is_between_frames()) peer_loss_ = PeerLoss::ended;
    lose(why);
}

uint32_t TreeConnection::own_address() const {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length) != 0 || address.sin_family != AF_INET) return 0;
    return address.sin_addr.s_addr;
}

void TreeConnection::count_host_silence(Clock::time_point now, Clock::duration passed) {
    tcp_info info{};
    socklen_t length = sizeof info;
    const auto since = now - std::exchange(last_counted_, now);
    if (getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return;
    // The kernel counts in ticks of up to 10 ms, so an answer may look older than it is.
    constexpr std::chrono::milliseconds kTick{10};
    const bool has_answered =
        std::chrono::milliseconds(info.tcpi_last_ack_recv) <= since + kTick || last_received_ >= now - since;
    host_silence_ = info.tcpi_unacked == 0 || has_answered ? Clock::duration(0) : host_silence_ + passed;
}

void TreeConnection::on_ready(uint32_t events) {
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) receive();
    if (fd_ >= 0 && (events & EPOLLOUT)) flush();
}

void TreeConnection::receive() {
    static thread_local char buffer[64 * 1024];
    for (size_t total = 0; total < kReadAtOnce && fd_ >= 0;) {
        const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0 && errno == ECONNRESET) return end_by_peer(std::strerror(errno));
        if (n < 0) return lose(std::strerror(errno));
        if (n == 0) {
            return end_by_peer(sealer_ ? "it closed the connection"
                                       : "it closed the connection before the key was proved: it belongs to another universe, "
                                         "or has too many other connections");
        }
        total += static_cast<size_t>(n);
        last_received_ = Clock::now();
        if (!handle_bytes({buffer, static_cast<size_t>(n)})) return;
    }
}

// Returns false if the connection has been closed.
bool TreeConnection::handle_bytes(std::string_view bytes) {
    if (!opener_ && !handle_hello(bytes)) return false;
    while (!bytes.empty()) {
        TreeFrameKind kind{};
        std::string body;
        const auto result = opener_->feed(bytes, kind, body);
        if (result == FrameOpener::FrameOpenResult::garbage) {
            lose("it sent data that is damaged or not authentic");
            return false;
        }
        if (result != FrameOpener::FrameOpenResult::frame || kind == TreeFrameKind::heartbeat) continue;
        if (kind == TreeFrameKind::parting) {
            peer_has_parted_ = true;
            continue;
        }
        handlers_.on_frame(kind, body);
        if (fd_ < 0) return false;
    }
    return true;
}

bool TreeConnection::handle_hello(std::string_view& bytes) {
    std::string answer;
    const auto state = handshake_.feed(bytes, answer);
    if (!answer.empty()) {
        queued_ += answer.size();
        parts_.push_back({std::move(answer), nullptr});
        pump();
    }
    if (state == Handshake::HandshakeState::refused) {
        lose(handshake_.why());
        return false;
    }
    if (state == Handshake::HandshakeState::waiting) return true;
    sealer_.emplace(handshake_.key_to_send());
    opener_.emplace(handshake_.key_to_receive());
    const auto tell = handlers_.on_open;  // a copy, because the call may replace the handlers
    if (tell) tell();
    return fd_ >= 0;
}

void TreeConnection::add(OutgoingFrame frame) {
    const std::string_view payload = frame.content ? frame.content->payload : std::string_view();
    const size_t body = frame.head.size() + payload.size() + frame.tail.size();
    queued_ += kFrameHead + body + kFrameSeal;
    // A small frame, the common case, is one piece. An encrypted payload must be copied in any case.
    if (payload.size() <= 4096 || sealer_->encrypts()) {
        parts_.push_back({sealer_->seal(frame.kind, frame.head, payload, frame.tail), nullptr});
        return;
    }
    std::string head = sealer_->head(frame.kind, body);
    const std::string seal = sealer_->seal_of(head, frame.head, payload, frame.tail);
    parts_.push_back({std::move(head.append(frame.head)), nullptr});
    parts_.push_back({{}, std::move(frame.content)});
    parts_.push_back({std::move(frame.tail.append(seal)), nullptr});
}

void TreeConnection::send(TreeFrameKind kind, std::string body) {
    if (!is_open()) return;
    add({kind, std::move(body), nullptr, {}});
    pump();
}

void TreeConnection::pump() {
    if (fd_ < 0 || flush_timer_ != 0 || wants_room_) return;
    flush_timer_ = loop_.after(std::chrono::milliseconds(0), [this] {
        flush_timer_ = 0;
        flush();
    });
}

bool TreeConnection::refill() {
    OutgoingFrame frame;
    while (queued_ < kWriteAhead && sealer_ && handlers_.pull && handlers_.pull(frame)) {
        add(std::move(frame));
        frame = {};
    }
    return !parts_.empty();
}

void TreeConnection::flush() {
    while (fd_ >= 0 && refill()) {
        if (!write_some()) return;
    }
    watch_for_room(false);
}

// Returns false if the kernel accepts no more bytes, or the connection is broken.
bool TreeConnection::write_some() {
    iovec parts[kMaxPieces];
    int n = 0;
    for (auto piece = parts_.begin(); piece != parts_.end() && n < kMaxPieces; ++piece, ++n) {
        const std::string_view view = piece->view();
        const size_t skip = n == 0 ? written_ : 0;
        parts[n] = {const_cast<char*>(view.data() + skip), view.size() - skip};
    }
    if (n == 0) return true;
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = static_cast<size_t>(n);
    const ssize_t sent = sendmsg(fd_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) return true;
    if (sent < 0 && errno == EAGAIN) {
        watch_for_room(true);
        return false;
    }
    if (sent < 0) {
        // receive() reports the error, after the last data from the peer has been handled.
        parts_.clear();
        queued_ = written_ = 0;
        shutdown(fd_, SHUT_WR);
        return false;
    }
    last_sent_ = Clock::now();
    queued_ -= static_cast<size_t>(sent);
    for (written_ += static_cast<size_t>(sent); !parts_.empty() && written_ >= parts_.front().view().size();) {
        written_ -= parts_.front().view().size();
        parts_.pop_front();
    }
    return true;
}

void TreeConnection::watch_for_room(bool wanted) {
    if (fd_ < 0 || wants_room_ == wanted) return;
    wants_room_ = wanted;
    loop_.change(fd_, wanted ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

}  // namespace starling::launch
