#include "launch/client/daemon_command.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "control/control_protocol.h"
#include "control/local_socket.h"
#include "control/start_server.h"
#include "control/well_known_socket.h"
#include "launch/common/client_protocol.h"
#include "launch/common/hosts.h"
#include "launch/common/nearest_name.h"
#include "launch/common/text.h"
#include "launch/universe/name_client.h"

namespace starling::launch {

namespace {

using control::MessageKind;

constexpr int kPatienceSeconds = 5;
constexpr const char* kNoAnswer = "the standing daemons do not answer";

enum class DaemonAnswer { given, hung_up, none };

DaemonAnswer forward_request(int fd, MessageKind kind, control::NameReply& reply) {
    const timeval patience{kPatienceSeconds, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!control::send_all(fd, control::encode_frame(kind, encode(control::NameRequest{}))))
        return errno == EPIPE || errno == ECONNRESET ? DaemonAnswer::hung_up : DaemonAnswer::none;
    control::FrameDecoder decoder(control::kMaxFrame);
    control::ControlFrame frame;
    char buffer[4096];
    for (;;) {
        const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return n == 0 || errno == ECONNRESET ? DaemonAnswer::hung_up : DaemonAnswer::none;
        decoder.feed({buffer, static_cast<size_t>(n)});
        const auto result = decoder.next(frame);
        if (result == control::FrameDecoder::ControlDecodeResult::garbage) return DaemonAnswer::none;
        if (result == control::FrameDecoder::ControlDecodeResult::frame)
            return decode(frame.payload, reply) ? DaemonAnswer::given : DaemonAnswer::none;
    }
}

int complain(const std::string& problem) {
    std::fprintf(stderr, "starling daemon: %s\n", problem.c_str());
    return 1;
}

int start_names(int running) {
    std::string problem;
    control::NameReply reply;
    if (running >= 0) {
        const DaemonAnswer answer = forward_request(running, MessageKind::persist, reply);
        if (answer == DaemonAnswer::none) return complain("the running daemon does not answer");
        if (answer == DaemonAnswer::given) std::puts("the daemon was running and now stays until stopped");
        if (answer == DaemonAnswer::given) return 0;
        // The running daemon was about to end: start another.
    }
    const std::string program = control::find_starlingd();
    if (program.empty()) return complain("starlingd is neither beside this program nor in PATH; reinstall Starling");
    const char* const arguments[] = {"names-persistent", nullptr};
    if (!control::start_detached(program, arguments, false, problem))
        return complain("cannot start " + program + ": " + problem);
    std::puts("the daemon runs");
    return 0;
}

// --- standing daemons on several hosts ---

struct StartOptions {
    std::vector<HostSlots> hosts;
    std::string agent, prefix;
    bool bad_hosts = false;  ///< whether the list or file of hosts is wrong, rather than the command line
};

std::string read_options(const std::vector<std::string>& arguments, StartOptions& out) {
    for (size_t i = 1; i < arguments.size(); ++i) {
        std::string name = arguments[i], value;
        const size_t dashes = name.find_first_not_of('-');
        if (dashes == 0 || dashes == std::string::npos) return "unexpected argument " + printable(name);
        name.erase(0, dashes);
        const size_t equals = name.find('=');
        if (equals != std::string::npos) value = name.substr(equals + 1);
        name.resize(std::min(equals, name.size()));
        const std::vector<std::string_view> known{"host",           "hosts",  "hostfile", "machinefile",
                                                  "launcher-agent", "prefix", "H",        "f"};
        if (std::find(known.begin(), known.end(), name) == known.end())
            return "unknown option " + printable(arguments[i]) + did_you_mean(name, known, "--");
        if (equals == std::string::npos) {
            if (++i == arguments.size()) return "option " + printable(arguments[i - 1]) + " needs a value";
            value = arguments[i];
        }
        std::string problem;
        if (name == "host" || name == "hosts" || name == "H") {
            problem = read_hosts(value, out.hosts);
        } else if (name == "hostfile" || name == "machinefile" || name == "f") {
            problem = read_hostfile(value, out.hosts);
        } else if (name == "launcher-agent") {
            out.agent = value;
        } else {
            out.prefix = value;
        }
        out.bad_hosts = !problem.empty();
        if (out.bad_hosts) return problem;
    }
    return {};
}

int start_standing(const StartOptions& options) {
    const std::string program = control::find_starlingd();
    if (program.empty()) return complain("starlingd is neither beside this program nor in PATH; reinstall Starling");
    if (!options.agent.empty()) setenv("STARLING_LAUNCHER_AGENT", options.agent.c_str(), 1);
    std::string list;
    for (const HostSlots& host : options.hosts) {
        list += (list.empty() ? "" : ",") + host.name;
        if (host.slots > 0) list += ":" + std::to_string(host.slots);
    }
    const int file = memfd_create("starling-hosts", MFD_CLOEXEC);
    if (file < 0 || ::write(file, list.data(), list.size()) != static_cast<ssize_t>(list.size()))
        return complain(std::string("no memory for the list of hosts: ") + std::strerror(errno));
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", getpid(), file);
    const char* const arguments[] = {"universe", path, options.prefix.c_str(), nullptr};
    std::string problem;
    const bool started = control::start_detached(program, arguments, false, problem);
    close(file);
    if (!started) return complain(problem);
    std::printf("daemons are up on %s; mpiexec finds them\n", number_of(options.hosts.size(), "host").c_str());
    return 0;
}

// Sends a request to the standing daemons. Returns false if none run, or they were about to end.
bool query_standing(MessageKind kind, std::string& text) {
    const int fd = control::connect_at({universe_socket_name()});
    if (fd < 0) return false;
    control::NameReply reply;
    const DaemonAnswer answer = forward_request(fd, kind, reply);
    ucred daemon{};
    socklen_t length = sizeof daemon;
    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &daemon, &length);
    // Wait until the stopped daemons have ended. Otherwise the user's next command, which may start new daemons, could still find the old
    // ones.
    char byte;
    while (answer == DaemonAnswer::given && kind == MessageKind::stop && recv(fd, &byte, 1, 0) > 0) {}
    close(fd);
    text = answer == DaemonAnswer::none
               ? kNoAnswer + (" (process " + std::to_string(daemon.pid) + "): kill it if it is stopped or hangs")
               : reply.text;
    return answer != DaemonAnswer::hung_up;
}

int complain_of_usage(const std::string& problem) {
    complain(problem + " (starling daemon --help lists all)");
    return 2;
}

// Returns an empty string, or a sentence on the words that are not a command of the daemon.
std::string check_words(const std::vector<std::string>& arguments) {
    const std::vector<std::string_view> verbs{"start", "stop", "status"};
    if (arguments.empty()) return "a command is missing: " + listed(verbs);
    const std::string& verb = arguments[0];
    if (std::find(verbs.begin(), verbs.end(), verb) == verbs.end())
        return "unknown command " + printable(verb) + did_you_mean(verb, verbs);
    return verb == "start" || arguments.size() == 1 ? "" : "unexpected argument " + printable(arguments[1]);
}

}  // namespace

const char* daemon_usage() {
    return "  starling daemon start [--host NAMES | --hostfile FILE] [--launcher-agent COMMAND] [--prefix DIR]\n"
           "  starling daemon stop|status\n"
           "With hosts: starts standing daemons on each of them, so that jobs start there at once. Without hosts: starts\n"
           "the daemon that stores published names.\n";
}

int daemon_command(const std::vector<std::string>& arguments) {
    if (const std::string problem = check_words(arguments); !problem.empty()) return complain_of_usage(problem);
    const std::string& verb = arguments[0];
    if (verb == "start" && arguments.size() > 1) {
        StartOptions options;
        std::string problem = read_options(arguments, options);
        if (problem.empty() && options.hosts.empty()) problem = "no hosts are named; name them by --host or --hostfile";
        if (!problem.empty()) return options.bad_hosts ? complain(problem) : complain_of_usage(problem);
        return start_standing(options);
    }
    std::string standing;
    const MessageKind question = verb == "stop" ? MessageKind::stop : MessageKind::status;
    const bool stands = verb != "start" && query_standing(question, standing);
    if (stands && standing.starts_with(kNoAnswer)) return complain(standing);
    if (stands) std::fputs(verb == "stop" ? "the standing daemons have ended\n" : standing.c_str(), stdout);

    std::string problem;
    const int fd = connect_daemon(false, problem);
    if (fd < 0 && problem != "no daemon runs") return complain(problem);
    if (verb == "start") {
        const int code = start_names(fd);
        if (fd >= 0) close(fd);
        return code;
    }
    if (fd < 0) {
        if (stands) return 0;
        std::puts("no daemon runs; one is started when a job needs it");
        return verb == "status" ? 3 : 0;
    }
    control::NameReply reply;
    const DaemonAnswer answer = forward_request(fd, question, reply);
    close(fd);
    if (answer == DaemonAnswer::none) return complain("the daemon does not answer");
    if (answer == DaemonAnswer::hung_up) reply.text = "no daemon runs; the last one has just ended\n";
    std::fputs(verb == "stop" ? "the daemon ends\n" : reply.text.c_str(), stdout);
    return 0;
}

}  // namespace starling::launch
