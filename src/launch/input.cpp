#include "launch/input.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>

namespace starling::launch {

InputForwarder::~InputForwarder() {
    if (to_rank_ >= 0) close(to_rank_);
}

int InputForwarder::open_pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    to_rank_ = ends[1];
    fcntl(to_rank_, F_SETFL, O_NONBLOCK);
    return ends[0];
}

void InputForwarder::resume() {
    // In the background a read would stop the launcher (SIGTTIN).
    if (to_rank_ < 0 || ended_ || reading_ || !pending_.empty() || tcgetpgrp(0) != getpgrp()) return;
    reading_ = loop_.watch(0, EPOLLIN, [this](uint32_t) { on_input(); });
}

void InputForwarder::stop() {
    ended_ = true;
    pending_.clear();
    close_pipe();
}

void InputForwarder::close_pipe() {
    if (reading_) loop_.forget(0);
    reading_ = false;
    if (to_rank_ < 0) return;
    loop_.forget(to_rank_);
    close(to_rank_);
    to_rank_ = -1;
}

void InputForwarder::on_input() {
    if (tcgetpgrp(0) != getpgrp()) {
        loop_.forget(0);
        reading_ = false;
        return;
    }
    char buffer[4096];
    const ssize_t n = read(0, buffer, sizeof buffer);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (n <= 0) {
        stop();
        return;
    }
    pending_.assign(buffer, static_cast<size_t>(n));
    loop_.forget(0);
    reading_ = false;
    on_writable();
}

void InputForwarder::on_writable() {
    const ssize_t n = write(to_rank_, pending_.data(), pending_.size());
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        stop();
        return;
    }
    if (n > 0) pending_.erase(0, static_cast<size_t>(n));
    loop_.forget(to_rank_);
    if (pending_.empty()) {
        resume();
    } else {
        loop_.watch(to_rank_, EPOLLOUT, [this](uint32_t) { on_writable(); });
    }
}

}  // namespace starling::launch
