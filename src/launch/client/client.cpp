#include "launch/client/client.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/config.h"
#include "control/local_socket.h"
#include "control/meeting.h"
#include "launch/common/client_protocol.h"
#include "launch/process/input.h"
#include "launch/process/output.h"
#include "launch/process/process_environment.h"

namespace starling::launch {

namespace {

constexpr int kForwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};
constexpr int kCannotStart = 127;

class Client {
  public:
    Client(const Options& options, ProfileFile& profile)
        : options_(options),
          profile_(profile),
          output_(loop_),
          reader_(loop_, [this](std::string data) { send(ClientMessage::input, data); }) {}

    ~Client() {
        if (socket_ >= 0) close(socket_);
        if (signals_ < 0) return;
        close(signals_);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }

    ClientOutcome run() {
        socket_ = control::connect_at({universe_socket_name()});
        if (socket_ < 0) {
            outcome_.text =
                errno == EPERM
                    ? "another user, or a process in another container, holds the name of the standing daemons' socket; "
                      "set XDG_RUNTIME_DIR to a directory of yours with mode 0700, or STARLING_UNIVERSE to a word of your own"
                    : "no standing daemons run (starling daemon start --hostfile ...)";
            return outcome_;
        }
        watch_signals();
        loop_.watch(socket_, EPOLLIN, [this](uint32_t) { on_readable(); });
        send(ClientMessage::submit, encode(submission()));
        loop_.run();
        output_.drain();
        return outcome_;
    }

  private:
    Submission submission() const {
        Submission submission;
        submission.spec.programs = options_.programs;
        submission.spec.forward_input = true;
        submission.spec.recovers = options_.recovers;
        submission.spec.encrypts = config().encryption;
        submission.spec.plan = options_.plan;
        submission.spec.universe_size = options_.universe_size;
        submission.style.tag_output = options_.tag_output;
        submission.style.binding = options_.binding;
        submission.style.report_bindings = options_.report_bindings;
        submission.verbose = options_.verbose;
        submission.quiet = options_.quiet;
        submission.profile = profile_.is_open();
        submission.timeout_seconds = static_cast<uint32_t>(options_.timeout_seconds);
        char here[PATH_MAX];
        if (getcwd(here, sizeof here)) submission.directory = here;
        submission.environment = own_environment();
        return submission;
    }

    void watch_signals() {
        signal(SIGPIPE, SIG_IGN);
        sigset_t watched;
        sigemptyset(&watched);
        for (const int number : kForwarded) sigaddset(&watched, number);
        sigprocmask(SIG_BLOCK, &watched, &before_);
        signals_ = signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
        if (signals_ >= 0) loop_.watch(signals_, EPOLLIN, [this](uint32_t) { on_signals(); });
    }

    void on_signals() {
        signalfd_siginfo info;
        while (read(signals_, &info, sizeof info) == sizeof info) {
            const int number = static_cast<int>(info.ssi_signo);
            const bool deadly = number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
            // Before the job has started there is nothing to forward to: to hang up ends it.
            if (deadly && (!started_ || finished_)) return end(128 + number);
            send(ClientMessage::signal, encode(ClientNotice{info.ssi_signo, {}}));
            if (number == SIGTSTP) kill(getpid(), SIGSTOP);
            if (number == SIGCONT && reading_) reader_.next();
        }
    }

    void send(ClientMessage message, std::string_view payload) {
        if (!control::send_all(socket_, control::encode_frame(kind_of(message), payload))) lost();
    }

    void lost() {
        if (loop_.stopped() || finished_) return;
        std::fprintf(stderr, "mpiexec: the standing daemon has gone, and the job with it\n");
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

    void on_readable() {
        char buffer[64 * 1024];
        const ssize_t n = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n <= 0) {
            loop_.forget(socket_);
            return lost();
        }
        decoder_.feed({buffer, static_cast<size_t>(n)});
        control::Frame frame;
        while (!loop_.stopped()) {
            const auto result = decoder_.next(frame);
            if (result == control::FrameDecoder::Result::need_more) return;
            if (result == control::FrameDecoder::Result::garbage || !on_frame(frame)) return lost();
        }
    }

    bool on_frame(const control::Frame& frame) {
        ClientNotice notice;
        switch (static_cast<ClientMessage>(frame.kind)) {
            case ClientMessage::started:
                return on_started(frame.payload);
            case ClientMessage::output:
                if (!decode(frame.payload, notice)) return false;
                output_.write_lines(notice.number == 2 ? 2 : 1, notice.bytes, [this] { send(ClientMessage::written, {}); });
                return true;
            case ClientMessage::taken:
                reader_.next();
                return true;
            case ClientMessage::profile:
                profile_.write(frame.payload);
                return true;
            case ClientMessage::finished:
                if (!decode(frame.payload, notice)) return false;
                finished_ = true;
                output_.when_written([this, code = static_cast<int>(notice.number)] { end(code); });
                return true;
            default:
                return false;
        }
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
            std::fprintf(stderr, "mpiexec: %s\n", reply.text.c_str());
            end(kCannotStart);
            return true;
        }
        if (options_.verbose) {
            std::fprintf(stderr,
                         "mpiexec: started through the standing daemons of %u hosts: nothing had to be "
                         "started first\n",
                         reply.hosts);
        }
        reading_ = true;
        reader_.next();
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
    int signals_ = -1;
    sigset_t before_{};
    bool started_ = false;
    bool finished_ = false;
    bool reading_ = false;
};

}  // namespace

ClientOutcome run_as_client(const Options& options, ProfileFile& profile) { return Client(options, profile).run(); }

}  // namespace starling::launch
