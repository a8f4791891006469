#include "launch/process/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace starling::launch {

namespace {

constexpr size_t kBuffer = 64 * 1024;  // capacity of a pipe
// Capacity of the output's pipe once much is written to it. A pipe that is more than half full takes only small pieces, and for each the
// writer and the reader would wait for the pipe's lock.
constexpr size_t kLargePipe = 1024 * 1024, kMuchPending = 32 * 1024;
// Capacity of the pipes of so many ranks once they were full, so that their writers sleep less often. A user's pipes of more than 64 MB in
// total make the kernel keep all new ones of that user tiny.
constexpr size_t kLargeSource = 256 * 1024;
constexpr int kMostLargeSources = 32;
constexpr size_t kLongestLine = 64 * 1024;     // limit of a line; longer lines are split
constexpr size_t kEnoughPending = 256 * 1024;  // unwritten bytes beyond which the ranks' pipes are not read
constexpr size_t kMostRest = 1024 * 1024;      // limit for the rest of a pipe (its capacity): some processes write without end
constexpr std::chrono::milliseconds kPatience{200}, kShortPatience{20}, kLongPatience{1000};
constexpr uint64_t kBlock = 4096;                       ///< block size of the C library when it writes to a pipe
constexpr int kLastWait = 2000;                         ///< ms to wait for a reader that takes nothing, at the end
constexpr std::chrono::milliseconds kReaderCheck{250};  ///< period of check_readers()

// Other processes share the open file description, so it must not be made non-blocking. Opens the same file again instead.
int description_of_our_own(int target) {
    struct stat status {};
    if (fstat(target, &status) != 0) return target;
    if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return target;
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", target);
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return fd < 0 ? target : fd;
}

// Opens both ends of a raw pseudo-terminal with the window size of descriptor `like`.
bool open_terminal(int like, int (&ends)[2]) {
    ends[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (ends[0] < 0) return false;
    char name[64];
    if (grantpt(ends[0]) == 0 && unlockpt(ends[0]) == 0 && ptsname_r(ends[0], name, sizeof name) == 0) {
        ends[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
        termios settings;
        if (ends[1] >= 0 && tcgetattr(ends[1], &settings) == 0) {
            cfmakeraw(&settings);
            tcsetattr(ends[1], TCSANOW, &settings);
            winsize size;
            if (ioctl(like, TIOCGWINSZ, &size) == 0) ioctl(ends[1], TIOCSWINSZ, &size);
            return true;
        }
        if (ends[1] >= 0) close(ends[1]);
    }
    close(ends[0]);
    return false;
}

// Returns where in `text` the unfinished line begins; npos: nowhere, because all of it continues an earlier line. A carriage return
// overwrites the line, unless a newline follows it, which may arrive later.
size_t unfinished_from(std::string_view text) {
    const auto last = [](std::string_view in, char sought) {
        const void* found = in.empty() ? nullptr : memrchr(in.data(), sought, in.size());
        return found ? static_cast<size_t>(static_cast<const char*>(found) - in.data()) : std::string_view::npos;
    };
    const size_t newline = last(text, '\n');
    const size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    const size_t none = begin > 0 ? begin : std::string_view::npos;
    if (text.size() - begin < 2) return none;
    const size_t back = last(text.substr(begin, text.size() - begin - 1), '\r');
    return back == std::string_view::npos ? none : begin + back;
}

// Returns the local time, with a space after it.
std::string now_as_text() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    tm local{};
    char date[32], text[48];
    strftime(date, sizeof date, "%Y-%m-%d %H:%M:%S", localtime_r(&now.tv_sec, &local));
    std::snprintf(text, sizeof text, "%s.%03ld ", date, now.tv_nsec / 1000000);
    return text;
}

}  // namespace

bool leads_nowhere(int target) {
    struct stat status {};
    return fstat(target, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

std::string open_output_files(OutputTagger& output, const OutputStyle& style) {
    const std::pair<int, const std::string&> files[] = {{kOutputFile, style.output_file}, {kErrorFile, style.error_file}};
    for (const auto& [stream, pattern] : files) {
        if (pattern.empty() || !is_shared(pattern)) continue;
        if (std::string problem = output.open_file(stream, expand_pattern(pattern, {})); !problem.empty()) return problem;
    }
    return {};
}

bool output_and_error_are_one() {
    struct stat output, error;
    return fstat(1, &output) == 0 && fstat(2, &error) == 0 && output.st_dev == error.st_dev && output.st_ino == error.st_ino;
}

OutputTagger::OutputTagger(EventLoop& loop, std::string name)
    : loop_(loop), name_(std::move(name)), buffer_(kBuffer), next_file_(kErrorFile + 1) {}

OutputTagger::~OutputTagger() {
    loop_.cancel(unread_timer_);
    for (OutputSource& source : sources_) close_source(source);
    for (auto& [key, sink] : sinks_) {
        if (sink.waiting) loop_.forget(sink.fd);
        if (sink.job == 0 && sink.fd != sink.target) close(sink.fd);
    }
}

OutputTagger::OutputSink& OutputTagger::sink(int target, job::JobId job) {
    if (const auto stream = streams_.find(target); stream != streams_.end() && job == 0) target = stream->second;
    const auto [found, created] = sinks_.try_emplace({job, target});
    OutputSink& sink = found->second;
    if (!created) return sink;
    sink.target = target;
    sink.job = job;
    if (job == 0) open_sink(sink);
    return sink;
}

void OutputTagger::open_sink(OutputSink& sink) {
    sink.fd = description_of_our_own(sink.target);
    classify(sink);
}

void OutputTagger::classify(OutputSink& sink) {
    struct stat status {};
    sink.pipe_bytes = 0;
    if (fstat(sink.fd, &status) != 0) return;
    sink.never_blocks = S_ISREG(status.st_mode) || leads_nowhere(sink.fd);
    if (!S_ISFIFO(status.st_mode) || sink.fd == sink.target) return;
    if (const int bytes = fcntl(sink.fd, F_GETPIPE_SZ); bytes > 0) sink.pipe_bytes = static_cast<size_t>(bytes);
}

void OutputTagger::reopen() {
    for (auto& [key, sink] : sinks_) {
        if (sink.job != 0 || !sink.path.empty()) continue;
        if (std::exchange(sink.waiting, false)) loop_.forget(sink.fd);
        if (sink.fd != sink.target) close(sink.fd);
        open_sink(sink);
        flush(sink, false);
    }
}

// Returns the sink of a file, which is created with its directories and emptied when the first rank gets it. Returns null with errno if the
// file cannot be opened.
OutputTagger::OutputSink* OutputTagger::file_sink(const std::string& path) {
    for (auto& [key, sink] : sinks_)
        if (sink.path == path) return &sink;
    std::error_code problem;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), problem);
    // A FIFO without a reader is an error (ENXIO), and a terminal does not become that of this process.
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (fd < 0) {
        if (problem) errno = problem.value();  // why the directory is missing
        return nullptr;
    }
    OutputSink& sink = sinks_[{0, next_file_}];
    sink.target = next_file_++;
    sink.fd = fd;
    sink.path = path;
    classify(sink);
    return &sink;
}

std::string OutputTagger::open_file(int stream, const std::string& path) {
    const OutputSink* const file = file_sink(path);
    if (!file) return "the output file '" + path + "' can't be written: " + std::strerror(errno);
    streams_[stream] = file->target;
    return {};
}

// Closes the files of ranks that have ended. Those of streams stay open, because other hosts may still send lines.
void OutputTagger::close_unused_files() {
    std::erase_if(sinks_, [this](const auto& entry) {
        const OutputSink& sink = entry.second;
        const auto uses = [&](const OutputSource& source) { return source.sink == &sink || source.copy == &sink; };
        const auto is_stream = [&](const auto& stream) { return stream.second == sink.target; };
        if (sink.path.empty() || sink.waiting || std::any_of(sources_.begin(), sources_.end(), uses) ||
            std::any_of(streams_.begin(), streams_.end(), is_stream))
            return false;
        close(sink.fd);
        return true;
    });
}

int OutputTagger::open_pipe(OutputRoute route) {
    forget_closed();
    int ends[2];
    OutputSink* const file = route.file.empty() ? nullptr : file_sink(route.file);
    if (!file && !route.file.empty()) return -1;
    OutputSink& to = file && route.only_file ? *file : sink(route.target, route.job);
    if ((!route.terminal || !open_terminal(route.target, ends)) && pipe2(ends, O_CLOEXEC) != 0) return -1;
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    OutputSource& source = sources_.emplace_back(OutputSource{ends[0], &to, std::move(route), nullptr, {}});
    if (file != &to) source.copy = file;
    loop_.watch(ends[0], is_paused(source) ? 0 : static_cast<uint32_t>(EPOLLIN),
                [this, &source](uint32_t) { on_readable(source); });
    return ends[1];
}

void OutputTagger::on_readable(OutputSource& source) {
    size_t bytes = 0;
    if (!read_some(source, bytes)) end(source);
    flush(source, false);
    forget_closed();
}

bool OutputTagger::read_some(OutputSource& source, size_t& bytes) {
    bytes = 0;
    const ssize_t n = ::read(source.fd, buffer_.data(), buffer_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (n < 0) lose_rest(source, errno);
    if (n <= 0) return false;
    bytes = static_cast<size_t>(n);
    if (bytes == kBuffer && !std::exchange(source.was_full, true)) enlarge_pipe(source);
    add_text(source, {buffer_.data(), bytes});
    return true;
}

// Enlarges the pipe of a rank that writes faster than the pipe is read. The user's limit for pipes may forbid it.
void OutputTagger::enlarge_pipe(const OutputSource& source) {
    const auto large = std::count_if(sources_.begin(), sources_.end(), [](const OutputSource& each) { return each.was_full; });
    const int bytes = fcntl(source.fd, F_GETPIPE_SZ);  // pages of 64 KB make it larger from the start
    if (bytes < static_cast<int>(kLargeSource) && large <= kMostLargeSources)
        fcntl(source.fd, F_SETPIPE_SZ, static_cast<int>(kLargeSource));
}

void OutputTagger::read_rest(OutputSource& source) {
    for (size_t bytes = 0, all = 0; all < kMostRest && read_some(source, bytes) && bytes > 0; all += bytes) {}
    end(source);
}

void OutputTagger::add_text(OutputSource& source, std::string_view text) {
    source.last_text = EventLoop::Clock::now();
    source.bytes += text.size();
    if (!source.route.prefix.empty() || source.route.timestamp) return add_tagged(source, text);
    std::string& line = source.line;
    const size_t begin = unfinished_from(text);
    if (begin != std::string_view::npos) {
        put(source, line);
        put(source, text.substr(0, begin));
        line.assign(text.substr(begin));
    } else {
        if (line.size() > 1 && line.back() == '\r') {  // text other than a newline follows
            put(source, std::string_view(line).substr(0, line.size() - 1));
            line.erase(0, line.size() - 1);
        }
        line.append(text);
    }
    if (line.size() >= kLongestLine) {
        put(source, line);
        line.clear();
    }
    if (!line.empty() && source.patience == 0)
        source.patience =
            loop_.after(source.route.alone ? kShortPatience : kPatience, [this, &source] { pass_unfinished(source); });
}

void OutputTagger::add_tagged(OutputSource& source, std::string_view text) {
    while (!text.empty()) {
        const size_t newline = text.find('\n');
        const size_t length = newline == std::string_view::npos ? text.size() : newline + 1;
        source.line.append(text.substr(0, length));
        text.remove_prefix(length);
        if (newline == std::string_view::npos && source.line.size() < kLongestLine) return;
        if (newline == std::string_view::npos) source.line.push_back('\n');
        if (source.route.timestamp) put(source, now_as_text());
        put(source, source.route.prefix);
        put(source, source.line);
        source.line.clear();
    }
}

void OutputTagger::pass_unfinished(OutputSource& source) {
    source.patience = 0;
    if (source.line.empty()) return;
    // The line of this timer may have ended, and another begun. A process that writes full blocks has not paused to prompt, but has lost
    // its core in the middle of a line, so it gets more time.
    const auto needed = source.bytes % kBlock == 0 ? kLongPatience : source.route.alone ? kShortPatience : kPatience;
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(EventLoop::Clock::now() - source.last_text);
    if (waited < needed) {
        source.patience = loop_.after(needed - waited, [this, &source] { pass_unfinished(source); });
        return;
    }
    // If this process itself got no core for a while, more data may already be in the pipe. Read it first.
    size_t bytes = 0;
    if (!is_paused(source) && read_some(source, bytes) && bytes > 0) return flush(source, false);
    put(source, source.line);
    source.line.clear();
    flush(source, false);
}

void OutputTagger::end(OutputSource& source) {
    if (source.fd < 0) return;
    if (!source.line.empty()) {
        if (source.route.prefix.empty() && !source.route.timestamp) {
            put(source, source.line);
        } else {
            add_tagged(source, "\n");
        }
    }
    close_source(source);
}

void OutputTagger::close_source(OutputSource& source) {
    if (source.fd < 0) return;
    loop_.forget(source.fd);
    loop_.cancel(source.patience);
    close(source.fd);
    source.fd = -1;
    source.line.clear();
}

void OutputTagger::forget_closed() {
    sources_.remove_if([](const OutputSource& source) { return source.fd < 0; });
}

void OutputTagger::write_out(OutputSink& sink, bool may_block) {
    int patience = may_block ? kLastWait : 0;
    while (sink.written < sink.pending.size()) {
        pollfd ready{sink.fd, POLLOUT, 0};
        if (!sink.never_blocks && poll(&ready, 1, patience) == 0 && !enlarge_pipe(sink)) break;
        if (write_chunk(sink)) continue;
        // Some terminals are reported ready but take no data.
        if (patience <= 0) break;
        poll(nullptr, 0, 10);
        patience -= 10;
    }
    if (sink.written == sink.pending.size()) {
        sink.pending.clear();
        sink.written = 0;
    } else if (sink.written > kBuffer) {
        sink.pending.erase(0, std::exchange(sink.written, 0));
    }
    const bool wait = !sink.pending.empty();
    if (wait == sink.waiting) return;
    if (wait) {
        sink.stalled_since = EventLoop::Clock::now();
        sink.waiting = loop_.watch(sink.fd, EPOLLOUT, [this, &sink](uint32_t) { flush(sink, false); });
    } else {
        loop_.forget(sink.fd);
        sink.waiting = false;
    }
}

// Enlarges the output's pipe if it is small and much is pending for it. Returns whether it did. The user's limit for pipes may forbid it.
bool OutputTagger::enlarge_pipe(OutputSink& sink) {
    if (sink.pipe_bytes == 0 || sink.pipe_bytes >= kLargePipe || sink.pending.size() - sink.written < kMuchPending)
        return false;
    const int bytes = fcntl(sink.fd, F_SETPIPE_SZ, static_cast<int>(kLargePipe));
    if (bytes > 0) sink.pipe_bytes = static_cast<size_t>(bytes);
    return bytes > 0;
}

// Returns how many bytes a pipe that poll reports as ready takes in one piece without blocking. PIPE_BUF bytes always fit. Half of its
// capacity minus its content fits too, since its pages are at least half full. A longer piece might be split.
size_t OutputTagger::chunk_size(OutputSink& sink) {
    int held = 0;
    if (sink.pipe_bytes / 2 <= PIPE_BUF || ioctl(sink.fd, FIONREAD, &held) != 0 || held < 0) return PIPE_BUF;
    const auto full = static_cast<size_t>(held);
    if (full >= sink.pipe_bytes / 2) enlarge_pipe(sink);
    return full < sink.pipe_bytes / 2 ? std::max<size_t>(sink.pipe_bytes / 2 - full, PIPE_BUF) : PIPE_BUF;
}

// Writes one piece of the pending text. Returns false if nothing was written.
bool OutputTagger::write_chunk(OutputSink& sink) {
    std::string_view front = std::string_view(sink.pending).substr(sink.written);
    if (!sink.never_blocks) {
        // Write whole lines in one piece, since other processes may write to the same file.
        front = front.substr(0, chunk_size(sink));
        if (const size_t lines = front.rfind('\n') + 1; lines > 0) front = front.substr(0, lines);
    }
    const ssize_t n = ::write(sink.fd, front.data(), front.size());
    if (n > 0) sink.written += static_cast<size_t>(n);
    if (n > 0 && sink.waiting) sink.stalled_since = EventLoop::Clock::now();
    if (n >= 0 || errno == EINTR) return true;
    if (errno == EAGAIN) return false;
    lose(sink, errno);
    return true;
}

void OutputTagger::lose(OutputSink& sink, int error) {
    sink.pending.clear();
    sink.written = 0;
    if (error == EPIPE || error == ECONNRESET) {
        // Close the pipes of the ranks, so that they get the SIGPIPE that a direct pipe to that reader would cause.
        if (exit_code_ == 0) exit_code_ = 128 + SIGPIPE;
        sink.reader_closed = true;
        for (OutputSource& source : sources_) {
            if (source.sink == &sink) close_source(source);
        }
        return sink.from_elsewhere ? report_reader_closed() : void();
    }
    exit_code_ = 1;
    // The sink stays open, since later writes may succeed (a full disk may have room again).
    if (std::exchange(sink.failed, true) || sink.target == 2) return;
    report("output of the processes can't be written to " + (sink.path.empty() ? "standard output" : "'" + sink.path + "'") +
           " and is lost: " + std::strerror(error) +
           (error == ENOSPC || error == EDQUOT ? "; free some space there, or redirect the output" : ""));
}

void OutputTagger::lose_rest(const OutputSource& source, int error) {
    if (error == EIO && source.route.terminal) return;  // all processes have closed the terminal's other end
    if (exit_code_ == 0) exit_code_ = 1;
    report(std::string("output of the processes can't be read, and the rest of it is lost: ") + std::strerror(error));
}

void OutputTagger::lose_unread(std::chrono::seconds time) {
    const auto now = EventLoop::Clock::now();
    unread_until_ = std::max(unread_until_, now + time);
    if (unread_timer_ != 0) return;
    unread_from_ = now;
    unread_timer_ = loop_.after(kReaderCheck, [this] { check_readers(); });
}

void OutputTagger::check_readers() {
    const auto now = EventLoop::Clock::now();
    unread_timer_ = 0;
    const bool over = now >= unread_until_ && !when_written_;
    for (auto& [key, sink] : sinks_) {
        if (over) sink.unread = false;
        if (over || !sink.waiting) continue;
        if (now - std::max(sink.stalled_since, unread_from_) < std::chrono::milliseconds(kLastWait)) continue;
        discard_unread(sink);
        regulate(sink);
    }
    if (!over) unread_timer_ = loop_.after(kReaderCheck, [this] { check_readers(); });
}

// Drops the text that the reader has not taken, and from now on all that can't be written at once.
void OutputTagger::discard_unread(OutputSink& sink) {
    if (sink.pending.empty()) return;
    sink.pending.clear();
    sink.written = 0;
    if (std::exchange(sink.waiting, false)) loop_.forget(sink.fd);
    if (std::exchange(sink.unread, true) || sink.target == 2) return;
    if (exit_code_ == 0) exit_code_ = 1;
    report((sink.path.empty() ? "standard output" : "'" + sink.path + "'") +
           " is not read, so the rest of the processes' output is lost");
}

void OutputTagger::report(const std::string& sentence) {
    if (on_problem) return on_problem(sentence);
    if (!name_.empty()) write_lines(2, name_ + ": " + sentence + "\n", {});
}

void OutputTagger::report_reader_closed() {
    if (!on_reader_closed || std::exchange(reported_closed_, true)) return;
    loop_.after(std::chrono::milliseconds(0), [this] { on_reader_closed(); });
}

void OutputTagger::put(const OutputSource& source, std::string_view text) {
    source.sink->pending.append(text);
    if (source.copy) source.copy->pending.append(text);
}

void OutputTagger::flush(const OutputSource& source, bool may_block) {
    if (source.copy) flush(*source.copy, may_block);
    flush(*source.sink, may_block);
}

void OutputTagger::flush(OutputSink& sink, bool may_block) {
    if (sink.job == 0) {
        if (sink.reader_closed) sink.pending.clear();
        write_out(sink, may_block && !sink.unread);
        if (may_block || sink.unread) discard_unread(sink);
    } else if (!sink.pending.empty() && forward) {
        sink.in_flight += sink.pending.size();
        forward(sink.job, sink.target, std::exchange(sink.pending, {}));
    }
    regulate(sink);
}

void OutputTagger::regulate(OutputSink& sink) {
    const bool pause = sink.pending.size() - sink.written + sink.in_flight > kEnoughPending;
    if (pause != std::exchange(sink.paused, pause)) {
        for (const OutputSource& source : sources_) {
            if ((source.sink == &sink || source.copy == &sink) && source.fd >= 0)
                loop_.change(source.fd, is_paused(source) ? 0 : static_cast<uint32_t>(EPOLLIN));
        }
    }
    if (pause) return;
    if (sink.job == 0 && sink.pending.empty()) check_written();
    for (const auto& room : std::exchange(sink.on_room, {})) room();
}

void OutputTagger::read_now() {
    for (OutputSource& source : sources_) {
        size_t bytes = 0;
        if (source.fd < 0 || is_paused(source)) continue;
        while (read_some(source, bytes) && bytes == buffer_.size() && !is_paused(source)) flush(source, false);
        flush(source, false);
    }
}

void OutputTagger::when_written(std::function<void()> done) {
    when_written_ = std::move(done);
    check_written();
}

bool OutputTagger::all_written() const {
    return std::all_of(sinks_.begin(), sinks_.end(),
                       [](const auto& entry) { return entry.second.job != 0 || entry.second.pending.empty(); });
}

// Reads the rest of one pipe after the other, each when all earlier output is written. So a slow reader causes at most one pipe's content
// to be buffered.
void OutputTagger::check_written() {
    if (!when_written_ || checking_) return;
    checking_ = true;
    for (OutputSource& source : sources_) {
        if (!all_written()) break;
        if (source.fd < 0 || source.sink->job != 0) continue;
        read_rest(source);
        flush(source, false);
    }
    checking_ = false;
    if (!all_written()) return;
    if (const auto done = std::exchange(when_written_, nullptr)) done();
}

void OutputTagger::acknowledge(job::JobId job, int target, size_t bytes) {
    const auto found = sinks_.find({job, target});
    if (found == sinks_.end()) return;
    found->second.in_flight -= std::min(bytes, found->second.in_flight);
    regulate(found->second);
}

void OutputTagger::add_line(job::JobId job, int target, const std::string& line) {
    OutputSink& to = sink(target, job);
    to.pending += line + "\n";
    flush(to, false);
}

void OutputTagger::write_lines(int target, std::string_view lines, std::function<void()> written) {
    OutputSink& to = sink(target, 0);
    to.pending.append(lines);
    if (written) {
        to.from_elsewhere = true;
        to.on_room.push_back(std::move(written));
        if (to.reader_closed) report_reader_closed();
    }
    flush(to, false);
}

void OutputTagger::end_job(job::JobId job) {
    for (OutputSource& source : sources_) {
        if (source.fd < 0 || source.route.job != job) continue;
        read_rest(source);
        flush(source, false);
    }
    sources_.remove_if([job](const OutputSource& source) { return source.route.job == job; });
    close_unused_files();
    std::erase_if(sinks_, [job](const auto& entry) { return entry.second.job == job; });
}

void OutputTagger::drain() {
    for (OutputSource& source : sources_) {
        if (source.fd < 0) continue;
        read_rest(source);
        flush(source, true);
    }
    for (auto& [key, sink] : sinks_) flush(sink, true);
}

}  // namespace starling::launch
