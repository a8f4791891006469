#include "launch/daemon_command.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdio>

#include "boot/control_protocol.h"
#include "boot/local_socket.h"
#include "boot/start_server.h"
#include "launch/name_client.h"

namespace starling::launch {

namespace {

using boot::MessageKind;

constexpr int kPatienceSeconds = 5;

bool ask(int fd, MessageKind kind, boot::NameReply& reply) {
    const timeval patience{kPatienceSeconds, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!boot::send_all(fd, boot::encode_frame(kind, encode(boot::NameRequest{})))) return false;
    boot::FrameDecoder decoder(boot::kMaxFrame);
    boot::Frame frame;
    char buffer[4096];
    for (;;) {
        const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        if (n <= 0) return false;
        decoder.feed({buffer, static_cast<size_t>(n)});
        const auto result = decoder.next(frame);
        if (result == boot::FrameDecoder::Result::garbage) return false;
        if (result == boot::FrameDecoder::Result::frame) return decode(frame.payload, reply);
    }
}

int complain(const std::string& problem) {
    std::fprintf(stderr, "starling daemon: %s\n", problem.c_str());
    return 1;
}

int start(int running) {
    std::string problem;
    boot::NameReply reply;
    if (running >= 0) {
        if (!ask(running, MessageKind::persist, reply))
            return complain("the running daemon does not answer");
        std::puts("the daemon was running and now stays until stopped");
        return 0;
    }
    const std::string program = boot::find_starlingd();
    if (program.empty())
        return complain("starlingd is neither beside this program nor in PATH; reinstall Starling");
    const char* const arguments[] = {"names-persistent", nullptr};
    if (!boot::start_detached(program, arguments, false, problem))
        return complain("cannot start " + program + ": " + problem);
    std::puts("the daemon runs");
    return 0;
}

}  // namespace

int daemon_command(const std::vector<std::string>& arguments) {
    const std::string verb = arguments.size() == 1 ? arguments[0] : "";
    if (verb != "start" && verb != "stop" && verb != "status") {
        std::fputs("usage: starling daemon start|stop|status\n", stderr);
        return 2;
    }
    std::string problem;
    const int fd = connect_daemon(false, problem);
    if (fd < 0 && problem != "no daemon runs") return complain(problem);
    if (verb == "start") {
        const int code = start(fd);
        if (fd >= 0) close(fd);
        return code;
    }
    if (fd < 0) {
        std::puts("no daemon runs; one is started when a job needs it");
        return verb == "status" ? 3 : 0;
    }
    boot::NameReply reply;
    const bool answered = ask(fd, verb == "stop" ? MessageKind::stop : MessageKind::status, reply);
    close(fd);
    if (!answered) return complain("the daemon does not answer");
    std::fputs(verb == "stop" ? "the daemon ends\n" : reply.text.c_str(), stdout);
    return 0;
}

}  // namespace starling::launch
