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

// Connects to the launcher. If this singleton had started the launcher and it has been killed, the singleton first starts another.
int reach_launcher(job::JobSegment& own, bool may_wait, int& fd) {
    job::JobHeader& header = own.header();
    const bool ours = knows_pids() && header.owner_pid == getpid();
    if (header.control_socket[0] != '\0') {
        fd = connect_launcher(header, may_wait);
        if (fd >= 0 || !ours || errno != ECONNREFUSED) return MPI_SUCCESS;
        header.control_socket[0] = '\0';
    }
    if (const int error = start_server(own)) return error;
    job::deposit_again();
    fd = connect_launcher(header, may_wait);
    return MPI_SUCCESS;
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
    const job::JobHeader& header = own.header();
    ControlCall call;
    call.cell_ = &own.cell(rank);
    call.replies_seen_ = call.cell_->replies.load(std::memory_order_acquire);
    if (const int error = reach_launcher(own, kind != MessageKind::profile, call.fd_)) return error;
    if (call.fd_ < 0) {
        if (errno == EMFILE || errno == ENFILE) {
            return fail(MPI_ERR_OTHER, "no file descriptor left to ask the job's launcher; raise `ulimit -n`");
        }
        if (errno == EAGAIN) return fail(MPI_ERR_PENDING, "the queue of the job's launcher is full; try again later");
        if (errno == EPERM) return fail(MPI_ERR_OTHER, "the socket of the job's launcher belongs to another user");
        return fail(MPI_ERR_PROC_ABORTED, "the launcher of this job (process %d) does not answer: %s", header.owner_pid,
                    std::strerror(errno));
    }
    ControlHello hello;
    hello.job = header.id;
    std::memcpy(hello.secret, header.secret, sizeof hello.secret);
    hello.rank = rank;
    if (!send_all(call.fd_, encode_frame(MessageKind::hello, encode(hello)) + encode_frame(kind, payload))) {
        return fail(MPI_ERR_PROC_ABORTED, "the launcher of this job closed the connection: %s", std::strerror(errno));
    }
    out = std::move(call);
    return MPI_SUCCESS;
}

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
