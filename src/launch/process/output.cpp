#include "launch/process/output.h"

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
constexpr std::chrono::milliseconds kPatience{20}, kLongPatience{1000};
constexpr uint64_t kBlock = 4096;  ///< what the C library writes at a time to a pipe
}  // namespace

OutputTagger::OutputTagger(EventLoop& loop) : loop_(loop) {}

OutputTagger::~OutputTagger() {
    for (Source& source : sources_) {
        loop_.forget(source.fd);
        loop_.cancel(source.patience);
        close(source.fd);
    }
    for (auto& [key, sink] : sinks_) {
        if (sink.waiting) loop_.forget(sink.target);
    }
}

OutputTagger::Sink& OutputTagger::sink(int target, job::JobId job) {
    const auto [found, created] = sinks_.try_emplace({job, target});
    if (created) {
        found->second.target = target;
        found->second.job = job;
    }
    return found->second;
}

int OutputTagger::open_pipe(int target, std::string prefix, job::JobId job) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    Source& source = sources_.emplace_back(Source{ends[0], &sink(target, job), std::move(prefix), {}});
    loop_.watch(ends[0], EPOLLIN, [this, &source](uint32_t) { on_readable(source); });
    return ends[1];
}

void OutputTagger::on_readable(Source& source) {
    Sink& target = *source.sink;
    if (!read_some(source)) end(source);
    flush(target, false);
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
    source.last_text = EventLoop::Clock::now();
    source.bytes += text.size();
    std::string& pending = source.sink->pending;
    while (!text.empty()) {
        const size_t newline = text.find('\n');
        const size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
        source.line.append(text.substr(0, length));
        text.remove_prefix(length);
        if (newline == std::string_view::npos && source.line.size() < kLongestLine) {
            // A prompt ends without a newline; without tags it need not wait for one.
            if (source.prefix.empty() && source.patience == 0)
                source.patience = loop_.after(kPatience, [this, &source] { hand_on_unfinished(source); });
            return;
        }
        if (newline == std::string_view::npos && !source.prefix.empty()) source.line.push_back('\n');
        pending.append(source.prefix).append(source.line);
        source.line.clear();
    }
}

void OutputTagger::hand_on_unfinished(Source& source) {
    source.patience = 0;
    if (source.line.empty()) return;
    // The line that this was started for may have ended, and another begun. And whoever writes full blocks has not stopped
    // to ask, but has lost its core in the middle of a line.
    const auto needed = source.bytes % kBlock == 0 ? kLongPatience : kPatience;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(EventLoop::Clock::now() - source.last_text);
    if (waited < needed) {
        source.patience = loop_.after(needed - waited, [this, &source] { hand_on_unfinished(source); });
        return;
    }
    source.sink->pending.append(source.line);
    source.line.clear();
    flush(*source.sink, false);
}

void OutputTagger::end(Source& source) {
    if (!source.line.empty()) {
        if (source.prefix.empty()) {
            source.sink->pending.append(source.line);
        } else {
            add_text(source, "\n");
        }
    }
    loop_.forget(source.fd);
    loop_.cancel(source.patience);
    close(source.fd);
    sources_.remove_if([&](const Source& s) { return &s == &source; });
}

void OutputTagger::write_out(Sink& sink, bool may_block) {
    // A pipe that poll calls writable takes PIPE_BUF bytes without blocking; the descriptor itself must not
    // be made non-blocking, since it is shared with whoever else has it.
    while (!sink.pending.empty() && !sink.broken) {
        pollfd ready{sink.target, POLLOUT, 0};
        if (poll(&ready, 1, may_block ? 2000 : 0) == 0) break;
        // Whole lines: ranks of this host write to the same place, and what they write comes between two of these.
        const std::string_view front = std::string_view(sink.pending).substr(0, PIPE_BUF);
        const size_t lines = front.rfind('\n') + 1;  // 0 if there is no end of a line
        const ssize_t n = write(sink.target, front.data(), lines > 0 ? lines : front.size());
        if (n < 0 && errno != EINTR && errno != EAGAIN) sink.broken = true;
        if (n > 0) sink.pending.erase(0, static_cast<size_t>(n));
    }
    if (sink.broken) sink.pending.clear();
    const bool wait = !sink.pending.empty();
    if (wait == sink.waiting) return;
    if (wait) {
        sink.waiting = loop_.watch(sink.target, EPOLLOUT, [this, &sink](uint32_t) { flush(sink, false); });
    } else {
        loop_.forget(sink.target);
        sink.waiting = false;
    }
}

void OutputTagger::flush(Sink& sink, bool may_block) {
    if (sink.job == 0) {
        write_out(sink, may_block);
    } else if (!sink.pending.empty() && forward) {
        sink.in_flight += sink.pending.size();
        forward(sink.job, sink.target, std::exchange(sink.pending, {}));
    }
    regulate(sink);
}

void OutputTagger::regulate(Sink& sink) {
    const bool pause = sink.pending.size() + sink.in_flight > kEnoughPending;
    for (Source& source : sources_) {
        if (source.sink != &sink || source.paused == pause) continue;
        source.paused = pause;
        loop_.change(source.fd, pause ? 0 : static_cast<uint32_t>(EPOLLIN));
    }
    if (pause) return;
    if (sink.job == 0 && sink.pending.empty()) check_written();
    for (const auto& room : std::exchange(sink.on_room, {})) room();
}

void OutputTagger::when_written(std::function<void()> done) {
    when_written_ = std::move(done);
    check_written();
}

void OutputTagger::check_written() {
    for (const auto& [key, sink] : sinks_) {
        if (sink.job == 0 && !sink.pending.empty()) return;
    }
    if (const auto done = std::exchange(when_written_, nullptr)) done();
}

void OutputTagger::acknowledge(job::JobId job, int target, size_t bytes) {
    const auto found = sinks_.find({job, target});
    if (found == sinks_.end()) return;
    found->second.in_flight -= std::min(bytes, found->second.in_flight);
    regulate(found->second);
}

void OutputTagger::write_lines(int target, std::string_view lines, std::function<void()> written) {
    Sink& to = sink(target, 0);
    to.pending.append(lines);
    if (written) to.on_room.push_back(std::move(written));
    flush(to, false);
}

void OutputTagger::end_job(job::JobId job) {
    for (auto next = sources_.begin(); next != sources_.end();) {
        Source& source = *next++;
        if (source.sink->job != job) continue;
        for (pollfd ready{source.fd, POLLIN, 0}; poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) && read_some(source);) {}
        Sink& target = *source.sink;
        end(source);
        flush(target, false);
    }
    std::erase_if(sinks_, [job](const auto& entry) { return entry.second.job == job; });
}

void OutputTagger::drain() {
    while (!sources_.empty()) {
        Source& source = sources_.front();
        Sink& target = *source.sink;
        // What the ranks wrote is in the pipe; who else still holds its other end is not waited for.
        for (pollfd ready{source.fd, POLLIN, 0}; poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) && read_some(source);) {}
        end(source);
        flush(target, true);
    }
    for (auto& [key, sink] : sinks_) flush(sink, true);
}

}  // namespace starling::launch
