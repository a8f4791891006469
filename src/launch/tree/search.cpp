#include "launch/tree/search.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "launch/tree/addresses.h"

namespace starling::launch {

namespace {
constexpr std::chrono::milliseconds kStagger{250};  // time before the next address is tried in parallel
constexpr std::chrono::milliseconds kPause{100};    // pause between two rounds through all addresses
// Time after which silent addresses are tried again, beside the attempts that are still open. On a network that loses packets TCP doubles
// its timeouts: a connection that lost its SYN and then its first segment has sent nothing more for 9 s. A new one needs a round trip.
constexpr std::chrono::milliseconds kSilentFor{2000};
constexpr int kMostUnreachable = 2;  // EHOSTUNREACH from one address that a start takes as final; each takes the kernel 3 s
constexpr int kMostPerTarget = 4;    // limit of open attempts at one address; a further one replaces the oldest
}  // namespace

UplinkSearch::UplinkSearch(EventLoop& loop, const TreeCredentials& credentials, const std::vector<Ancestor>& candidates,
                           std::string attach, std::chrono::milliseconds limit, bool patient, OnFound on_found,
                           OnFailed on_failed)
    : loop_(loop),
      credentials_(credentials),
      attach_(std::move(attach)),
      deadline_(EventLoop::Clock::now() + limit),
      patient_(patient),
      on_found_(std::move(on_found)),
      on_failed_(std::move(on_failed)) {
    for (const Ancestor& candidate : candidates) {
        for (DaemonAddress& endpoint : nearest_first(candidate.endpoints))
            targets_.push_back({candidate.name, std::move(endpoint)});
    }
    limit_ = loop_.after(limit, [this] {
        limit_ = 0;
        abandon();
    });
    stagger_ = loop_.after(std::chrono::milliseconds(0), [this] { begin_round(); });
}

UplinkSearch::~UplinkSearch() {
    for (Attempt& attempt : attempts_) {
        if (attempt.fd < 0) continue;
        loop_.forget(attempt.fd);
        close(attempt.fd);
    }
    for (const auto timer : {stagger_, limit_}) {
        if (timer != 0) loop_.cancel(timer);
    }
}

void UplinkSearch::begin_round() {
    stagger_ = 0;
    next_ = 0;
    hopeless_ = true;
    graves_.clear();
    next();
}

void UplinkSearch::next() {
    if (ended_) return;
    if (stagger_ != 0) loop_.cancel(stagger_);
    stagger_ = 0;
    if (next_ == targets_.size()) {
        if (attempts_.empty()) return round_over();
        stagger_ = loop_.after(kSilentFor, [this] { begin_round(); });
        return;
    }
    stagger_ = loop_.after(kStagger, [this] {
        stagger_ = 0;
        next();
    });
    make_room(next_);
    try_target(next_++);
}

// Closes the oldest attempt at an address at which as many are open as may be. The one that was sent the Attach stays.
void UplinkSearch::make_room(size_t target) {
    const auto at_target = [&](const Attempt& attempt) { return attempt.target == target; };
    if (std::count_if(attempts_.begin(), attempts_.end(), at_target) < kMostPerTarget) return;
    set_aside(std::find_if(attempts_.begin(), attempts_.end(),
                           [&](const Attempt& attempt) { return at_target(attempt) && &attempt != asked_; }));
}

void UplinkSearch::try_target(size_t target) {
    sockaddr_in name{};
    const auto attempt = attempts_.insert(attempts_.end(), Attempt{target, -1, nullptr, false});
    if (!socket_address(targets_[target].endpoint, name))
        return failed(attempt, "not a valid IPv4 address; report this as a bug of Starling", true);
    attempt->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (attempt->fd < 0) return failed(attempt, std::strerror(errno), false);
    tune_socket(attempt->fd);
    if (connect(attempt->fd, reinterpret_cast<sockaddr*>(&name), sizeof name) != 0 && errno != EINPROGRESS)
        return not_connected(attempt, errno);
    loop_.watch(attempt->fd, EPOLLOUT, [this, attempt](uint32_t) { on_connected(attempt); });
}

void UplinkSearch::on_connected(Attempts::iterator attempt) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(attempt->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    loop_.forget(attempt->fd);
    if (error == 0) return converse(attempt);
    not_connected(attempt, error);
}

void UplinkSearch::not_connected(Attempts::iterator attempt, int error) {
    const bool refused = error == ECONNREFUSED;
    // The kernel also reports this error if the few packets that ask for the host's link address were lost.
    const bool may_be_loss = error == EHOSTUNREACH && ++targets_[attempt->target].unreachable < kMostUnreachable;
    failed(attempt, refused ? "refused; no process listens there, or a firewall rejects it" : std::strerror(error),
           refused || !(patient_ || may_be_loss));
}

void UplinkSearch::converse(Attempts::iterator attempt) {
    TreeConnection::Handlers handlers;
    handlers.on_open = [this, attempt] {
        attempt->proved = true;
        query_next();
    };
    handlers.on_frame = [this, attempt](TreeFrameKind kind, std::string& body) { on_frame(attempt, kind, body); };
    handlers.on_close = [this, attempt](const std::string& why) { failed(attempt, why, false); };
    const int fd = std::exchange(attempt->fd, -1);
    attempt->connection =
        std::make_unique<TreeConnection>(loop_, fd, Handshake::HandshakeRole::child, credentials_, std::move(handlers));
}

// Sends the Attach to one authenticated daemon at a time: two addresses may belong to one daemon, which accepts this node only once.
void UplinkSearch::query_next() {
    if (asked_ || ended_) return;
    for (Attempt& attempt : attempts_) {
        if (!attempt.proved) continue;
        asked_ = &attempt;
        attempt.connection->send(TreeFrameKind::attach, attach_);
        return;
    }
}

void UplinkSearch::on_frame(Attempts::iterator attempt, TreeFrameKind kind, const std::string& body) {
    std::vector<Ancestor> ancestors;
    if (kind == TreeFrameKind::refuse) {
        attempt->connection->close();
        return failed(attempt, body, true);
    }
    if (kind != TreeFrameKind::welcome || !decode(body, ancestors)) {
        attempt->connection->close();
        return failed(attempt, "it sent an invalid answer", true);
    }
    ended_ = true;
    FoundParent found{std::move(attempt->connection), std::move(ancestors)};
    attempts_.erase(attempt);
    // The callback may destroy this object, so use no member after it.
    const OnFound tell = on_found_;
    tell(std::move(found));
}

void UplinkSearch::failed(Attempts::iterator attempt, const std::string& why, bool final) {
    targets_[attempt->target].outcome = why;
    hopeless_ = hopeless_ && final;
    set_aside(attempt);
    if (stagger_ != 0) loop_.cancel(stagger_);
    stagger_ = loop_.after(std::chrono::milliseconds(0), [this] {
        stagger_ = 0;
        query_next();
        next();
    });
}

void UplinkSearch::set_aside(Attempts::iterator attempt) {
    if (attempt->fd >= 0) {
        loop_.forget(attempt->fd);
        close(attempt->fd);
    }
    if (attempt->connection) {
        attempt->connection->close();
        graves_.push_back(std::move(attempt->connection));
    }
    if (asked_ == &*attempt) asked_ = nullptr;
    attempts_.erase(attempt);
}

void UplinkSearch::round_over() {
    if (hopeless_ || EventLoop::Clock::now() >= deadline_) return abandon();
    stagger_ = loop_.after(kPause, [this] { begin_round(); });
}

void UplinkSearch::abandon() {
    if (ended_) return;
    ended_ = true;
    const OnFailed tell = on_failed_;
    tell(sentence());
}

std::string UplinkSearch::sentence() const {
    std::string text;
    for (const ParentCandidate& target : targets_) {
        text += text.empty() ? "cannot connect to " : "; to ";
        text += target.host + " at " + to_text(target.endpoint) + ": " + target.outcome;
    }
    return text.empty() ? "there is no address to connect to" : text;
}

}  // namespace starling::launch
