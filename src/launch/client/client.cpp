#include "launch/client/client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/config.h"
#include "control/local_socket.h"
#include "control/well_known_socket.h"
#include "launch/client/debugger_table.h"
#include "launch/client/dry_run.h"
#include "launch/common/client_protocol.h"
#include "launch/common/repeated_signal.h"
#include "launch/common/signals.h"
#include "launch/common/text.h"
#include "launch/process/input.h"
#include "launch/process/output.h"
#include "launch/process/process_environment.h"
#include "launch/universe/job_client.h"

namespace starling::launch {

namespace {

class DaemonClient {
  public:
    DaemonClient(const Options& options, ProfileFile& profile)
        : options_(options),
          profile_(profile),
          output_(loop_, options.quiet ? "" : "mpiexec"),
          reader_(loop_, [this](std::string data) { send(ClientMessage::input, data); }) {}

    ~DaemonClient() {
        if (socket_ >= 0) close(socket_);
        if (signals_ < 0) return;
        close(signals_);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }

    ClientOutcome run() {
        socket_ = control::connect_at({universe_socket_name()});
        if (socket_ < 0) {
            outcome_.text = control::held_name_problem(errno, universe_socket_name());
            if (outcome_.text.empty()) outcome_.text = "no standing daemons run (starling daemon start --hostfile ...)";
            return outcome_;
        }
        if (const std::string problem = open_files(); !problem.empty()) {
            std::fprintf(stderr, "mpiexec: %s\n", problem.c_str());
            outcome_ = {.served = true, .text = {}, .exit_code = kCannotStart};
            return outcome_;
        }
        watch_signals();
        output_.on_reader_closed = [this] {
            print("standard output has no reader any more; ending the job");
            end(128 + SIGPIPE);
        };
        loop_.watch(socket_, EPOLLIN, [this](uint32_t events) { on_ready(events); });
        send(options_.dry_run ? ClientMessage::preview : ClientMessage::submit, encode(submission()));
        loop_.on_turn = [this](bool interrupted) { on_turn(interrupted); };
        check_daemon();
        loop_.run();
        output_.drain();
        if (outcome_.served && outcome_.exit_code == 0) outcome_.exit_code = output_.exit_code();
        return outcome_;
    }

  private:
    // A preview must not create the files, which would also empty those of an earlier job.
    std::string open_files() { return options_.dry_run ? std::string() : open_output_files(output_, options_.output); }

    Submission submission() const {
        Submission submission;
        submission.spec = options_.spec();
        submission.style = options_.style();
        submission.verbose = options_.verbose;
        submission.quiet = options_.quiet;
        submission.profile = profile_.is_open();
        has_debugger_attached();
        submission.is_debugged = is_being_debugged();
        submission.timeout_seconds = static_cast<uint32_t>(options_.timeout_seconds);
        char here[PATH_MAX];
        if (getcwd(here, sizeof here)) submission.directory = here;
        submission.environment = own_environment();
        return submission;
    }

    void watch_signals() {
        signal(SIGPIPE, SIG_IGN);
        const sigset_t watched = forwarded_signals();
        sigprocmask(SIG_BLOCK, &watched, &before_);
        signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
        if (signals_ >= 0) loop_.watch(signals_, EPOLLIN, [this](uint32_t) { on_signals(); });
    }

    void on_signals() {
        signalfd_siginfo info;
        while (::read(signals_, &info, sizeof info) == sizeof info) {
            const int number = static_cast<int>(info.ssi_signo);
            const bool deadly = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
            // Before the job has started, no process can receive the signal. Closing the connection ends the job.
            if (deadly && (!started_ || finished_)) return end(128 + number);
            send(ClientMessage::signal, encode(ClientNotice{info.ssi_signo, {}}));
            if (deadly) output_.lose_unread(std::chrono::seconds(config().signal_grace));
            if (insistence_.grows(number)) end_soon(128 + number);
            if (number == SIGTSTP) suspend();
            if (number == SIGCONT && reading_) reader_.next();
        }
    }

    // A repeated signal means that the user wants the prompt back. The daemons kill the job now. If they can't, they will when this process
    // closes its connection.
    void end_soon(int code) {
        loop_.after(std::chrono::seconds(1), [this, code] {
            if (loop_.stopped() || finished_) return;
            print("the standing daemons have not ended the job yet; mpiexec does not wait for that");
            end(code);
        });
    }

    void print(const std::string& sentence) {
        if (!options_.quiet) output_.write_lines(2, "mpiexec: " + sentence + "\n", {});
    }

    void flush_all() {
        for (pollfd room{socket_, POLLOUT, 0}; !unsent_.empty() && poll(&room, 1, 1000) > 0 && !loop_.stopped();) flush();
    }

    void suspend() {
        flush_all();
        kill(getpid(), SIGSTOP);
    }

    /// Requests the processes for a debugger that has attached, or has stopped this process before the table was filled.
    void on_turn(bool interrupted) {
        const bool attached = has_debugger_attached();
        has_been_asked_ = has_been_asked_ || attached || interrupted;
        if (!started_ || finished_ || (!attached && !interrupted)) return;
        if (daemon_version_ == 0) {
            if (attached) print("the standing daemons are of Starling 0.1.0, which does not list processes for debuggers");
            return;
        }
        request_processes();
        if (attached && has_debugger_table()) report_spawned();
    }

    void request_processes() { send(ClientMessage::list, encode(ClientNotice{is_being_debugged(), {}})); }

    bool on_processes(const std::string& payload) {
        ProcessTable processes;
        if (!decode(payload, processes)) return false;
        add_to_debugger_table(std::move(processes));
        if (is_being_debugged()) {
            flush_all();
            report_spawned();
        }
        send(ClientMessage::shown, {});
        return true;
    }

    void send(ClientMessage message, std::string_view payload) { send(kind_of(message), payload); }
    // Sends without blocking: signals must be handled even if the daemon hangs.
    void send(control::MessageKind kind, std::string_view payload) {
        if (socket_gone_) return;
        unsent_ += control::encode_frame(kind, payload);
        flush();
    }

    void flush() {
        while (!unsent_.empty()) {
            const ssize_t n = ::send(socket_, unsent_.data(), unsent_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && errno == EAGAIN) break;
            if (n < 0) return hung_up();
            unsent_.erase(0, static_cast<size_t>(n));
        }
        const uint32_t events = unsent_.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
        if (std::exchange(events_, events) != events) loop_.change(socket_, events);
    }

    void hung_up() {
        if (!std::exchange(socket_gone_, true)) loop_.forget(socket_);
        lost();
    }

    // Detects a daemon that is stopped, or hangs with its host: the connection stays open then. Requests its status while it is silent.
    void check_daemon() {
        const std::chrono::milliseconds limit(config().silence_ms);
        const auto now = EventLoop::Clock::now();
        if (now - last_check_ > limit / 2) last_received_ = now;  // ignore silence while this process was suspended
        last_check_ = now;
        if (finished_ || loop_.stopped()) return;
        if (now - last_received_ > limit) return stop_with_error();
        if (now - last_received_ >= limit / 4 && !std::exchange(asked_, true))
            send(control::MessageKind::status, encode(control::NameRequest{}));
        loop_.after(std::max(limit / 4, std::chrono::milliseconds(1)), [this] { check_daemon(); });
    }

    void stop_with_error() {
        ucred daemon{};
        socklen_t length = sizeof daemon;
        getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &daemon, &length);
        std::fprintf(
            stderr,
            "mpiexec: the standing daemons (here process %d) have not answered for %lld ms (STARLING_SILENCE_MS); is "
            "one of them stopped, or its host? Look with 'starling daemon status'; end them with 'starling daemon stop', or "
            "kill "
            "that process, or do without them: --via direct or agent\n",
            daemon.pid, static_cast<long long>(config().silence_ms));
        end(started_ ? 1 : kCannotStart);
    }

    void lost() {
        if (loop_.stopped() || finished_) return;
        if (options_.dry_run) {
            print(
                "the standing daemons closed the connection (those of Starling 0.1.0 return no placement); the placement is "
                "that of a run without them");
            return loop_.stop(0);
        }
        print("the standing daemon has ended, and the job with it");
        outcome_.served = true;
        end(1);
    }

    void end(int code) {
        outcome_.served = true;
        outcome_.exit_code = code;
        reader_.stop();
        if (started_) profile_.close();
        loop_.stop(0);
    }

    void on_ready(uint32_t events) {
        if (events & EPOLLOUT) flush();
        if (!socket_gone_ && (events & ~EPOLLOUT)) on_readable();
    }

    void on_readable() {
        static char buffer[64 * 1024];  // a user may limit stacks to 64 KB
        const ssize_t n = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) return hung_up();
        last_received_ = EventLoop::Clock::now();
        asked_ = false;
        decoder_.feed({buffer, static_cast<size_t>(n)});
        control::ControlFrame frame;
        while (!loop_.stopped()) {
            const auto result = decoder_.next(frame);
            if (result == control::FrameDecoder::ControlDecodeResult::need_more) return;
            if (result == control::FrameDecoder::ControlDecodeResult::garbage || !on_frame(frame)) return lost();
        }
    }

    bool on_frame(const control::ControlFrame& frame) {
        ClientNotice notice;
        if (frame.kind == control::MessageKind::reply) return true;  // reply to our status request
        switch (static_cast<ClientMessage>(frame.kind)) {
            case ClientMessage::started:
                return on_started(frame.payload);
            case ClientMessage::placement:
                return options_.dry_run && on_placement(frame.payload);
            case ClientMessage::output:
                if (!decode(frame.payload, notice)) return false;
                output_.write_lines(stream_of(notice.number), notice.bytes, [this] { send(ClientMessage::written, {}); });
                return true;
            case ClientMessage::taken:
                reader_.next();
                return true;
            case ClientMessage::processes:
                return on_processes(frame.payload);
            case ClientMessage::profile:
                profile_.write(frame.payload);
                return true;
            case ClientMessage::finished:
                if (!decode(frame.payload, notice)) return false;
                finished_ = true;
                if (options_.timeout_seconds > 0 && notice.number == kTimedOut) output_.lose_unread({});
                output_.when_written([this, code = static_cast<int>(notice.number)] { end(code); });
                return true;
            default:
                return false;
        }
    }

    bool on_placement(const std::string& payload) {
        PlacementPreview preview;
        if (!decode(payload, preview)) return false;
        end(print_preview(preview, options_.programs));
        return true;
    }

    bool on_started(const std::string& payload) {
        SubmissionReply reply;
        if (!decode(payload, reply)) return false;
        if (reply.unknown_host) {
            outcome_.text = reply.text;
            loop_.stop(0);
            return true;
        }
        started_ = true;
        profile_.use(loop_);
        if (reply.error_class != 0) {
            const std::string text = reply.cannot_run ? options_.with_start_hint(reply.text, reply.failed_program) : reply.text;
            std::fprintf(stderr, "mpiexec: %s\n", text.c_str());
            end(kCannotStart);
            return true;
        }
        profile_.keep();
        if (options_.verbose) {
            std::fprintf(stderr, "mpiexec: started through the standing daemons of %s: nothing had to be started first\n",
                         number_of(reply.hosts, "host").c_str());
        }
        daemon_version_ = reply.version;
        if (daemon_version_ != 0 && (reply.hosts <= kListedHosts || has_been_asked_)) request_processes();
        reading_ = !options_.input.ranges.empty();
        if (reading_) reader_.next();
        return true;
    }

    const Options& options_;
    ProfileFile& profile_;
    EventLoop loop_;
    OutputTagger output_;
    InputReader reader_;
    control::FrameDecoder decoder_{control::kMaxFrame};
    ClientOutcome outcome_;
    int socket_ = -1;
    bool socket_gone_ = false;
    std::string unsent_;
    uint32_t events_ = EPOLLIN;
    EventLoop::Clock::time_point last_received_ = EventLoop::Clock::now(), last_check_ = last_received_;
    bool asked_ = false;  ///< true: the daemon has not answered the last status request yet
    RepeatedSignal insistence_;
    int signals_ = -1;
    sigset_t before_{};
    bool started_ = false;
    bool has_been_asked_ = false;  ///< true: a debugger has attached, or has stopped this process
    uint32_t daemon_version_ = 0;  ///< SubmissionReply::version
    bool finished_ = false;
    bool reading_ = false;
};

}  // namespace

ClientOutcome run_as_client(const Options& options, ProfileFile& profile) { return DaemonClient(options, profile).run(); }

}  // namespace starling::launch
