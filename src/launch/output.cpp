#include "launch/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

namespace starling::launch {

namespace {
constexpr size_t kLongestLine = 64 * 1024;     // longer ones are broken up
constexpr size_t kEnoughPending = 256 * 1024;  // then the ranks have to wait
}  // namespace

OutputTagger::OutputTagger(EventLoop& loop)
    : loop_(loop), sinks_{{1, {}, false, false}, {2, {}, false, false}} {}

OutputTagger::~OutputTagger() {
    for (Source& source : sources_) close(source.fd);
}

int OutputTagger::open_pipe(int target, std::string prefix) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    Source& source = sources_.emplace_back(Source{ends[0], target, std::move(prefix), {}});
    loop_.watch(ends[0], EPOLLIN, [this, &source](uint32_t) { on_readable(source); });
    return ends[1];
}

void OutputTagger::on_readable(Source& source) {
    const int target = source.target;
    if (!read_some(source)) end(source);
    flush(sink(target), false);
}

bool OutputTagger::read_some(Source& source) {
    char buffer[16 * 1024];
    const ssize_t n = read(source.fd, buffer, sizeof buffer);
    if (n < 0) return errno == EAGAIN || errno == EINTR;
    if (n == 0) return false;
    add_text(source, std::string_view(buffer, static_cast<size_t>(n)));
    return true;
}

void OutputTagger::add_text(Source& source, std::string_view text) {
    std::string& pending = sink(source.target).pending;
    while (!text.empty()) {
        const size_t newline = text.find('\n');
        const size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
        source.line.append(text.substr(0, length));
        text.remove_prefix(length);
        if (newline == std::string_view::npos && source.line.size() < kLongestLine) return;
        if (newline == std::string_view::npos) source.line.push_back('\n');
        pending.append(source.prefix).append(source.line);
        source.line.clear();
    }
}

void OutputTagger::end(Source& source) {
    if (!source.line.empty()) add_text(source, "\n");
    loop_.forget(source.fd);
    close(source.fd);
    sources_.remove_if([&](const Source& s) { return &s == &source; });
}

void OutputTagger::flush(Sink& sink, bool may_block) {
    // A pipe that poll calls writable takes PIPE_BUF bytes without blocking; the descriptor itself must not
    // be made non-blocking, since it is shared with whoever else has it.
    while (!sink.pending.empty() && !sink.broken) {
        pollfd ready{sink.fd, POLLOUT, 0};
        if (poll(&ready, 1, may_block ? 2000 : 0) == 0) break;
        const ssize_t n =
            write(sink.fd, sink.pending.data(), std::min<size_t>(sink.pending.size(), PIPE_BUF));
        if (n < 0 && errno != EINTR && errno != EAGAIN) sink.broken = true;
        if (n > 0) sink.pending.erase(0, static_cast<size_t>(n));
    }
    if (sink.broken) sink.pending.clear();
    const bool wait = !sink.pending.empty();
    if (wait != sink.waiting) {
        if (wait) {
            sink.waiting = loop_.watch(sink.fd, EPOLLOUT, [this, &sink](uint32_t) { flush(sink, false); });
        } else {
            loop_.forget(sink.fd);
            sink.waiting = false;
        }
    }
    const bool pause = sink.pending.size() > kEnoughPending;
    for (Source& source : sources_) {
        if (source.target != sink.fd || source.paused == pause) continue;
        source.paused = pause;
        loop_.change(source.fd, pause ? 0 : static_cast<uint32_t>(EPOLLIN));
    }
}

void OutputTagger::drain() {
    while (!sources_.empty()) {
        Source& source = sources_.front();
        const int target = source.target;
        // What the ranks wrote is in the pipe; who else still holds its other end is not waited for.
        for (pollfd ready{source.fd, POLLIN, 0};
             poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) && read_some(source);) {
        }
        end(source);
        flush(sink(target), true);
    }
    for (Sink& s : sinks_) flush(s, true);
}

}  // namespace starling::launch
