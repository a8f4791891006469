// agent HOST COMMAND...: runs a command on a host of the lab, like ssh.
//
// Replaces ssh for mpiexec --launcher-agent and other launchers. Like ssh it resolves the name, connects over the network (so that a cut
// cable or a firewall affects it), and joins the command's words with blanks for the remote shell. It transfers standard input, output and
// error, returns the command's exit code, and exits with 255 if it fails itself. It accepts and ignores ssh's options before the host.
// Unlike ssh it needs no key.
#include <netdb.h>
#include <poll.h>
#include <sys/time.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "frames.h"

using namespace starling::lab;

namespace {

constexpr int agent_failed = 255;  // exit code if the agent itself fails, as for ssh
int connect_seconds = 10;

struct Arguments {
    const char* host = nullptr;
    std::string command;
};

// Parses ssh's options before the host; an option's value is in the same word or the next.
bool parse(int argc, char** argv, Arguments& arguments) {
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; ++i) {
        bool has_value = std::strchr("bcDEeFIiJLlmOopQRSWw", argv[i][1]) != nullptr;
        if (!has_value) continue;
        const char* value = argv[i][2] ? argv[i] + 2 : ++i < argc ? argv[i] : "";
        if (std::strncmp(value, "ConnectTimeout=", 15) == 0) connect_seconds = std::atoi(value + 15);
    }
    if (i >= argc) return false;
    arguments.host = argv[i++];
    for (; i < argc; ++i) arguments.command.append(arguments.command.empty() ? "" : " ").append(argv[i]);
    return true;
}

int connect_to(const char* host) {
    if (const char* at = std::strchr(host, '@')) host = at + 1;
    addrinfo hints{}, *found = nullptr;
    hints.ai_family = AF_INET;
    hints.ai_socktype = SOCK_STREAM;
    if (int code = getaddrinfo(host, std::to_string(agent_port).c_str(), &hints, &found)) {
        std::fprintf(stderr, "agent: Could not resolve hostname %s: %s\n", host, gai_strerror(code));
        return -1;
    }
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    tune_agent_socket(fd);
    timeval limit{connect_seconds, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // Linux applies the send timeout to connect() too.
    // As ssh with ConnectionAttempts=3: where cables lose packets, all three that ask for the host's link address may be lost.
    int error = connect(fd, found->ai_addr, found->ai_addrlen);
    for (int again = 0; error != 0 && (errno == EINTR || (again < 2 && errno == EHOSTUNREACH)); again += errno != EINTR)
        error = connect(fd, found->ai_addr, found->ai_addrlen);  // after EINTR, which a stop causes, goes on with the first
    if (error != 0) {
        const char* reason = errno == EINPROGRESS ? "Connection timed out" : std::strerror(errno);
        std::fprintf(stderr, "agent: connect to host %s port %d: %s\n", host, agent_port, reason);
        close(fd);
        fd = -1;
    } else {
        limit = {0, 0};
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    }
    freeaddrinfo(found);
    return fd;
}

// Forwards standard input; returns false at its end.
bool forward_input(int fd) {
    char data[65536];
    ssize_t n = read(STDIN_FILENO, data, sizeof data);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n < 0) n = 0;
    send_frame(fd, Frame::input, data, static_cast<size_t>(n));
    return n > 0;
}

int run(int fd, const Arguments& arguments) {
    send_frame(fd, Frame::command, arguments.command.data(), arguments.command.size());
    pollfd waits[2] = {{fd, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    Frame kind;
    std::string data;
    while (true) {
        if (poll(waits, 2, -1) < 0) continue;
        if (waits[1].revents != 0 && !forward_input(fd)) waits[1].fd = -1;
        if (waits[0].revents == 0) continue;
        if (!receive_frame(fd, kind, data)) break;
        if (kind == Frame::end) return static_cast<unsigned char>(data[0]);
        write_all(kind == Frame::output ? STDOUT_FILENO : STDERR_FILENO, data.data(), data.size());
    }
    std::fprintf(stderr, "agent: Connection to %s closed by remote host.\n", arguments.host);
    return agent_failed;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    if (!parse(argc, argv, arguments)) {
        std::fprintf(stderr, "usage: agent HOST COMMAND...\n");
        return agent_failed;
    }
    std::signal(SIGPIPE, SIG_IGN);
    int fd = connect_to(arguments.host);
    return fd < 0 ? agent_failed : run(fd, arguments);
}
