#include "launch/client/daemon_command.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "control/control_protocol.h"
#include "control/local_socket.h"
#include "control/meeting.h"
#include "control/start_server.h"
#include "launch/common/client_protocol.h"
#include "launch/common/hosts.h"
#include "launch/universe/name_client.h"

namespace starling::launch {

namespace {

using control::MessageKind;

constexpr int kPatienceSeconds = 5;

bool ask(int fd, MessageKind kind, control::NameReply& reply) {
    const timeval patience{kPatienceSeconds, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!control::send_all(fd, control::encode_frame(kind, encode(control::NameRequest{})))) return false;
    control::FrameDecoder decoder(control::kMaxFrame);
    control::Frame frame;
    char buffer[4096];
    for (;;) {
        const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) return false;
        decoder.feed({buffer, static_cast<size_t>(n)});
        const auto result = decoder.next(frame);
        if (result == control::FrameDecoder::Result::garbage) return false;
        if (result == control::FrameDecoder::Result::frame) return decode(frame.payload, reply);
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
        if (!ask(running, MessageKind::persist, reply)) return complain("the running daemon does not answer");
        std::puts("the daemon was running and now stays until stopped");
        return 0;
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

constexpr int kStartSeconds = 60;  // ssh to many hosts takes its time; each host has its own, shorter limit

struct StartOptions {
    std::vector<HostSlots> hosts;
    std::string agent, prefix;
};

std::string read_options(const std::vector<std::string>& arguments, StartOptions& out) {
    for (size_t i = 1; i < arguments.size(); ++i) {
        std::string name = arguments[i], value;
        const size_t dashes = name.find_first_not_of('-');
        if (dashes == 0 || dashes == std::string::npos) return "'" + name + "' is not an option";
        name.erase(0, dashes);
        if (const size_t equals = name.find('='); equals != std::string::npos) {
            value = name.substr(equals + 1);
            name.erase(equals);
        } else if (++i < arguments.size()) {
            value = arguments[i];
        } else {
            return "option '" + arguments[i - 1] + "' needs a value";
        }
        std::string problem;
        if (name == "host" || name == "hosts" || name == "H") {
            problem = read_hosts(value, out.hosts);
        } else if (name == "hostfile" || name == "machinefile" || name == "f") {
            problem = read_hostfile(value, out.hosts);
        } else if (name == "launcher-agent") {
            out.agent = value;
        } else if (name == "prefix") {
            out.prefix = value;
        } else {
            problem = "unknown option '" + name + "'; there are --host, --hostfile, --launcher-agent and --prefix";
        }
        if (!problem.empty()) return problem;
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
    const char* const arguments[] = {"universe", list.c_str(), options.prefix.c_str(), nullptr};
    std::string problem;
    if (!control::start_detached(program, arguments, false, problem, kStartSeconds)) return complain(problem);
    std::printf("daemons are up on %zu hosts; mpiexec finds them\n", options.hosts.size());
    return 0;
}

// What the standing daemons say to a question; false if none run.
bool ask_standing(MessageKind kind, std::string& text) {
    const int fd = control::connect_at({universe_socket_name()});
    if (fd < 0) return false;
    control::NameReply reply;
    const bool answered = ask(fd, kind, reply);
    // They end; whoever comes back to start others must not meet these.
    char byte;
    while (answered && kind == MessageKind::stop && recv(fd, &byte, 1, 0) > 0) {}
    close(fd);
    text = answered ? reply.text : "the standing daemons do not answer\n";
    return true;
}

int complain_of_usage() {
    std::fprintf(stderr, "usage:\n%s", daemon_usage());
    return 2;
}

}  // namespace

const char* daemon_usage() {
    return "  starling daemon start [--host NAMES | --hostfile FILE] [--launcher-agent COMMAND] [--prefix DIR]\n"
           "  starling daemon stop|status\n"
           "With hosts: daemons on each of them, which stay, so that jobs start there at once. Without: the keeper of\n"
           "names.\n";
}

int daemon_command(const std::vector<std::string>& arguments) {
    const std::string verb = arguments.empty() ? "" : arguments[0];
    if ((verb != "start" && verb != "stop" && verb != "status") || (verb != "start" && arguments.size() > 1)) return complain_of_usage();
    if (verb == "start" && arguments.size() > 1) {
        StartOptions options;
        std::string problem = read_options(arguments, options);
        if (problem.empty() && options.hosts.empty()) problem = "no hosts are named: --host or --hostfile";
        return problem.empty() ? start_standing(options) : complain(problem);
    }
    std::string standing;
    const bool stands = verb != "start" && ask_standing(verb == "stop" ? MessageKind::stop : MessageKind::status, standing);
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
    const bool answered = ask(fd, verb == "stop" ? MessageKind::stop : MessageKind::status, reply);
    close(fd);
    if (!answered) return complain("the daemon does not answer");
    std::fputs(verb == "stop" ? "the daemon ends\n" : reply.text.c_str(), stdout);
    return 0;
}

}  // namespace starling::launch
