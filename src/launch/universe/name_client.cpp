#include "launch/universe/name_client.h"

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/config.h"
#include "control/local_socket.h"
#include "control/start_server.h"
#include "control/well_known_socket.h"
#include "mpi.h"

namespace starling::launch {

using control::MessageKind;
using control::NameReply;
using control::NameRequest;

int connect_daemon(bool may_start, std::string& problem) {
    const std::string name = control::daemon_socket_name();
    // Try several times: a daemon may be ending at this moment.
    for (int attempt = 0; attempt < 5; ++attempt) {
        const int fd = control::connect_at({name});
        if (fd >= 0) return fd;
        const int error = errno;
        problem = control::held_name_problem(error, name);
        if (!problem.empty()) return -1;
        errno = error;
        if (errno != ECONNREFUSED || !may_start) {
            problem =
                errno == ECONNREFUSED ? "no daemon runs" : std::string("cannot reach the daemon: ") + std::strerror(errno);
            return -1;
        }
        const std::string program = control::find_starlingd();
        if (program.empty()) {
            problem =
                "starlingd is neither beside mpiexec nor in PATH; reinstall Starling, or add its bin "
                "directory to PATH";
            return -1;
        }
        const char* const arguments[] = {"names", nullptr};
        if (!control::start_detached(program, arguments, false, problem)) {
            problem = "cannot start " + program + ": " + problem;
            return -1;
        }
    }
    problem = "the daemon ends as soon as it is started";
    return -1;
}

NameClient::~NameClient() {
    if (patience_ != 0) loop_.cancel(patience_);
    hang_up();
}

void NameClient::hang_up() {
    if (fd_ < 0) return;
    loop_.forget(fd_);
    close(fd_);
    fd_ = -1;
}

// Limits the wait for a daemon that is stopped or hangs, so that ranks do not wait forever.
void NameClient::expect_reply() {
    if (patience_ != 0) loop_.cancel(patience_);
    patience_ = 0;
    if (pending_.empty()) return;
    patience_ = loop_.after(std::chrono::milliseconds(config().silence_ms), [this] {
        patience_ = 0;
        ucred daemon{};
        socklen_t length = sizeof daemon;
        getsockopt(fd_, SOL_SOCKET, SO_PEERCRED, &daemon, &length);
        hang_up();
        fail_all("names can't be published or looked up: the daemon that stores them, process " + std::to_string(daemon.pid) +
                 ", has not answered within " + std::to_string(config().silence_ms) +
                 " ms (STARLING_SILENCE_MS); if it is stopped or hangs, kill it");
    });
}

bool NameClient::connect(std::string& problem) {
    if (fd_ >= 0) return true;
    fd_ = connect_daemon(true, problem);
    if (fd_ < 0) return false;
    const timeval longest{2, 0};  // if the daemon does not read for this long, it counts as silent
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
    decoder_ = control::FrameDecoder(control::kMaxFrame);
    loop_.watch(fd_, EPOLLIN, [this](uint32_t) { on_readable(); });
    return true;
}

bool NameClient::transmit(Pending& pending) {
    ++pending.attempts;
    return control::send_all(fd_, control::encode_frame(pending.kind, encode(pending.request)));
}

void NameClient::request(MessageKind kind, NameRequest request, NameCallback callback) {
    std::string problem;
    if (!connect(problem)) {
        callback({MPI_ERR_OTHER, "names can't be published or looked up: " + problem, {}});
        return;
    }
    pending_.push_back({kind, std::move(request), std::move(callback)});
    // If this fails, the daemon has just ended. The loop will detect it and send all pending requests again.
    transmit(pending_.back());
    if (patience_ == 0) expect_reply();
}

void NameClient::job_ended(job::JobId job) {
    std::erase_if(published_, [job](const NameRequest& name) { return name.job == job; });
    if (fd_ >= 0) control::send_all(fd_, control::encode_frame(MessageKind::job_ended, encode(NameRequest{job, {}, {}})));
}

void NameClient::on_readable() {
    char buffer[8192];
    const ssize_t n = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) decoder_.feed({buffer, static_cast<size_t>(n)});
    control::ControlFrame frame;
    control::FrameDecoder::ControlDecodeResult result = control::FrameDecoder::ControlDecodeResult::need_more;
    NameReply reply;
    while (n > 0 && (result = decoder_.next(frame)) == control::FrameDecoder::ControlDecodeResult::frame) {
        if (frame.kind != MessageKind::reply || !decode(frame.payload, reply) || pending_.empty()) {
            result = control::FrameDecoder::ControlDecodeResult::garbage;
            break;
        }
        on_reply(reply);
    }
    if (n <= 0 || result == control::FrameDecoder::ControlDecodeResult::garbage) on_lost();
}

void NameClient::on_reply(const NameReply& reply) {
    Pending answered = std::move(pending_.front());
    pending_.pop_front();
    expect_reply();
    if (reply.error_class == MPI_SUCCESS && answered.kind == MessageKind::publish && answered.callback) {
        published_.push_back(answered.request);
    } else if (reply.error_class == MPI_SUCCESS && answered.kind == MessageKind::unpublish) {
        std::erase_if(published_, [&](const NameRequest& name) { return name.service == answered.request.service; });
    }
    if (answered.callback) answered.callback(reply);
}

void NameClient::on_lost() {
    hang_up();
    // Remove requests that only republish names; they are created again from published_.
    std::erase_if(pending_, [](const Pending& pending) { return !pending.callback; });
    if (published_.empty() && pending_.empty()) return;
    std::string problem;
    const bool hopeless = std::any_of(pending_.begin(), pending_.end(), [](const Pending& p) { return p.attempts >= 3; });
    if (hopeless) problem = "the daemon ends each time it receives a request";
    if (hopeless && prctl(PR_GET_DUMPABLE) != 1)
        problem =
            "the daemon closes each connection, because /proc hides the launcher from it; give the launcher's program file "
            "read permission, or set XDG_RUNTIME_DIR to a directory of yours with mode 0700";
    if (hopeless || !connect(problem)) {
        fail_all("names can't be published or looked up: " + problem);
        return;
    }
    std::deque<Pending> again;
    for (const NameRequest& name : published_) again.push_back({MessageKind::publish, name, nullptr});
    for (Pending& pending : pending_) again.push_back(std::move(pending));
    pending_ = std::move(again);
    for (Pending& pending : pending_) transmit(pending);
    expect_reply();
}

void NameClient::fail_all(const std::string& problem) {
    std::deque<Pending> failed;
    failed.swap(pending_);
    expect_reply();
    for (const Pending& pending : failed) {
        if (pending.callback) pending.callback({MPI_ERR_OTHER, problem, {}});
    }
}

}  // namespace starling::launch
