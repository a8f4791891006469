#include "control/control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/process.h"
#include "control/local_socket.h"
#include "control/start_server.h"
#include "job/descriptor_passing.h"
#include "mpi.h"

namespace starling::control {

namespace {

int connect_launcher(const job::JobHeader& header, bool may_wait) {
    return connect_local(std::string_view(header.control_socket, strnlen(header.control_socket, sizeof header.control_socket)),
                         may_wait ? kLauncherMs : 0);
}

// True if this process is a singleton, which starts its launcher itself.
bool starts_launcher(const job::JobSegment& own) { return knows_pids() && own.header().owner_pid == getpid(); }

// Connects to the launcher. If this singleton had started the launcher and it has been killed, the singleton first starts another.
int reach_launcher(job::JobSegment& own, bool may_wait, int& fd) {
    job::JobHeader& header = own.header();
    if (header.control_socket[0] != '\0') {
        fd = connect_launcher(header, may_wait);
        if (fd >= 0 || !starts_launcher(own) || errno != ECONNREFUSED) return MPI_SUCCESS;
        header.control_socket[0] = '\0';
    }
    if (const int error = start_server(own)) return error;
    job::deposit_again();
    fd = connect_launcher(header, may_wait);
    return MPI_SUCCESS;
}

int explain_refusal(const job::JobHeader& header, int problem) {
    if (problem == EMFILE || problem == ENFILE) {
        return fail(MPI_ERR_OTHER, "no file descriptor left to ask the job's launcher; raise `ulimit -n`");
    }
    if (problem == EAGAIN) return fail(MPI_ERR_PENDING, "the queue of the job's launcher is full; try again later");
    if (problem == EPERM) return fail(MPI_ERR_OTHER, "the socket of the job's launcher belongs to another user");
    return fail(MPI_ERR_PROC_ABORTED, "the launcher of this job (process %d) does not answer: %s", header.owner_pid,
                std::strerror(problem));
}

}  // namespace

ControlCall::ControlCall(ControlCall&& other) noexcept { *this = std::move(other); }

ControlCall& ControlCall::operator=(ControlCall&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(cell_, other.cell_);
    std::swap(replies_seen_, other.replies_seen_);
    std::swap(polls_, other.polls_);
    std::swap(decoder_, other.decoder_);
    std::swap(reply_, other.reply_);
    std::swap(done_, other.done_);
    std::swap(repeated_, other.repeated_);
    std::swap(own_, other.own_);
    std::swap(rank_, other.rank_);
    std::swap(kind_, other.kind_);
    std::swap(payload_, other.payload_);
    return *this;
}

ControlCall::~ControlCall() {
    if (fd_ >= 0) close(fd_);
}

int ControlCall::start(job::JobSegment& own, uint32_t rank, MessageKind kind, std::string_view payload, ControlCall& out) {
    if (payload.size() > kMaxRequest) {
        return fail(kind == MessageKind::spawn ? MPI_ERR_SPAWN : MPI_ERR_OTHER,
                    "a request of %zu bytes to the job's launcher is too long; the limit is %u bytes", payload.size(),
                    kMaxRequest);
    }
    ControlCall call;
    call.own_ = &own;
    call.rank_ = rank;
    call.kind_ = kind;
    if (const int error = call.send_request(payload)) return error;
    if (starts_launcher(own)) call.payload_ = payload;
    out = std::move(call);
    return MPI_SUCCESS;
}

int ControlCall::send_request(std::string_view payload) {
    const job::JobHeader& header = own_->header();
    cell_ = &own_->cell(rank_);
    replies_seen_ = cell_->replies.load(std::memory_order_acquire);
    for (;;) {
        if (const int error = reach_launcher(*own_, kind_ != MessageKind::profile, fd_)) return error;
        if (fd_ < 0) return explain_refusal(header, errno);
        ControlHello hello;
        hello.job = header.id;
        std::memcpy(hello.secret, header.secret, sizeof hello.secret);
        hello.rank = rank_;
        if (send_all(fd_, encode_frame(MessageKind::hello, encode(hello)) + encode_frame(kind_, payload))) return MPI_SUCCESS;
        const int problem = errno;
        close(std::exchange(fd_, -1));
        if ((problem == EPIPE || problem == ECONNRESET) && may_repeat()) continue;
        return fail(MPI_ERR_PROC_ABORTED, "the launcher of this job closed the connection: %s", std::strerror(problem));
    }
}

// Returns true once, in a singleton: a launcher that refuses requests would reset each connection.
bool ControlCall::may_repeat() { return starts_launcher(*own_) && !std::exchange(repeated_, true); }

int ControlCall::poll(bool& done) {
    done = done_;
    if (done_) return MPI_SUCCESS;
    // The counter shows when a reply has arrived. Every 256th poll reads the socket in any case, to notice a launcher that has died.
    const uint32_t replies = cell_->replies.load(std::memory_order_acquire);
    if (replies == replies_seen_ && (++polls_ & 255) != 0) return MPI_SUCCESS;
    replies_seen_ = replies;
    char buffer[16 * 1024];
    for (;;) {
        const ssize_t n = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return MPI_SUCCESS;
        // A launcher that is being killed still accepts connections. The kernel reports a reset, and not an end of file, as long as a part of
        // the request was unread: the launcher has not acted on it, and a singleton may repeat it.
        if (n < 0 && errno == ECONNRESET && may_repeat()) {
            close(std::exchange(fd_, -1));
            return send_request(payload_);
        }
        if (n <= 0)
            return fail(
                MPI_ERR_PROC_ABORTED,
                "the launcher of this job closed the connection without a reply: it has ended, or is not of this version of "
                "Starling (use the mpiexec and the library of one installation)");
        decoder_.feed({buffer, static_cast<size_t>(n)});
        const auto result = decoder_.next(reply_);
        if (result == FrameDecoder::ControlDecodeResult::need_more) continue;
        if (result == FrameDecoder::ControlDecodeResult::garbage || reply_.kind != MessageKind::reply) {
            return fail(MPI_ERR_OTHER,
                        "the job's launcher sent an invalid reply; use the mpiexec and the library of one installation");
        }
        close(fd_);
        fd_ = -1;
        done = done_ = true;
        return MPI_SUCCESS;
    }
}

}  // namespace starling::control
