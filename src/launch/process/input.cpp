#include "launch/process/input.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace starling::launch {

bool InputReader::in_foreground() const { return !isatty(0) || tcgetpgrp(0) == getpgrp(); }

void InputReader::next() {
    if (ended_ || watching_) return;
    if (soon_ != 0) loop_.cancel(std::exchange(soon_, 0));
    if (!in_foreground()) return check_again();
    watching_ = loop_.watch(0, EPOLLIN, [this](uint32_t) { on_ready(); });
    if (watching_) return;
    // A regular file is always ready, and epoll does not support it.
    soon_ = loop_.after(std::chrono::milliseconds(0), [this] {
        soon_ = 0;
        on_ready();
    });
}

// Tries again later: a shell that moves a job to the foreground sends no signal if the job was not stopped.
void InputReader::check_again() {
    constexpr std::chrono::milliseconds kNextLook{500};
    soon_ = loop_.after(kNextLook, [this] {
        soon_ = 0;
        next();
    });
}

void InputReader::stop() {
    ended_ = true;
    if (watching_) loop_.forget(0);
    if (soon_ != 0) loop_.cancel(soon_);
    watching_ = false;
    soon_ = 0;
}

void InputReader::on_ready() {
    if (watching_) loop_.forget(0);
    watching_ = false;
    if (!in_foreground()) return check_again();
    char buffer[16 * 1024];
    const ssize_t n = ::read(0, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        next();
        return;
    }
    if (n <= 0) ended_ = true;
    on_data_(std::string(buffer, n > 0 ? static_cast<size_t>(n) : 0));
}

int InputPipe::open_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    to_rank_ = ends[1];
    fcntl(to_rank_, F_SETFL, O_NONBLOCK);
    return ends[0];
}

void InputPipe::feed(std::string data) {
    if (data.empty()) {
        close_pipe();
        return;
    }
    if (to_rank_ < 0) {
        on_taken_();  // The rank has closed its input: acknowledge the data, so that the sender can reach its end.
        return;
    }
    pending_ += data;
    on_writable();
}

void InputPipe::close_pipe() {
    pending_.clear();
    if (to_rank_ < 0) return;
    if (watching_) loop_.forget(to_rank_);
    watching_ = false;
    close(to_rank_);
    to_rank_ = -1;
}

void InputPipe::on_writable() {
    const ssize_t n = ::write(to_rank_, pending_.data(), pending_.size());
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        close_pipe();
        on_taken_();
        return;
    }
    if (n > 0) pending_.erase(0, static_cast<size_t>(n));
    if (pending_.empty()) {
        if (watching_) loop_.forget(to_rank_);
        watching_ = false;
        on_taken_();
    } else if (!watching_) {
        watching_ = loop_.watch(to_rank_, EPOLLOUT, [this](uint32_t) { on_writable(); });
    }
}

int InputFan::open_pipe(uint32_t rank) {
    InputBranch& branch = branches_.emplace_back();
    branch.rank = rank;
    branch.pipe = std::make_unique<InputPipe>(loop_, [this, &branch] { note_taken(branch); });
    return branch.pipe->open_pipe();
}

void InputFan::feed(const std::string& data) {
    feeding_ = true;
    for (InputBranch& branch : branches_) {
        branch.waits = !data.empty();
        branch.pipe->feed(data);
    }
    feeding_ = false;
    if (!data.empty()) check_taken();
}

void InputFan::close_pipe(uint32_t rank) {
    for (InputBranch& branch : branches_) {
        if (branch.rank != rank) continue;
        branch.pipe->close_pipe();
        if (branch.waits) note_taken(branch);
    }
}

void InputFan::note_taken(InputBranch& branch) {
    branch.waits = false;
    if (!feeding_) check_taken();
}

void InputFan::check_taken() {
    if (std::none_of(branches_.begin(), branches_.end(), [](const InputBranch& branch) { return branch.waits; })) on_taken_();
}

}  // namespace starling::launch
