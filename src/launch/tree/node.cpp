#include "launch/tree/node.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/config.h"
#include "base/error.h"
#include "base/version.h"
#include "base/wire.h"
#include "launch/common/process_start.h"
#include "launch/common/signals.h"
#include "launch/tree/implementation.h"

namespace starling::launch {

namespace {

constexpr int kOrdersSeconds = 30;
constexpr size_t kMostOrders = 16u << 20;

// Reads `size` more bytes from standard input. Returns false with errno after a failure or after kOrdersSeconds without input, and with
// errno 0 at the end of the input.
bool read_more(std::string& into, size_t size) {
    char buffer[8192];
    while (size > 0) {
        pollfd input{0, POLLIN, 0};
        const int ready = poll(&input, 1, kOrdersSeconds * 1000);
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) errno = ETIMEDOUT;
        if (ready <= 0) return false;
        const ssize_t n = ::read(0, buffer, std::min(size, sizeof buffer));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n == 0) errno = 0;
        if (n <= 0) return false;
        into.append(buffer, static_cast<size_t>(n));
        size -= static_cast<size_t>(n);
    }
    return true;
}

bool read_line(std::string& line) {
    while (line.size() < 1000) {
        if (!read_more(line, 1)) return false;
        if (line.back() != '\n') continue;
        line.pop_back();
        return true;
    }
    return false;
}

void write_line(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(fd, text.data(), text.size());
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        text.remove_prefix(static_cast<size_t>(n));
    }
}

std::string unreadable_orders() {
    return std::string("the orders of the daemon that starts this one can't be read from standard input: ") +
           std::strerror(errno);
}

// Reads the orders. Returns an empty string, or the reason for the failure.
std::string read_orders(Orders& orders) {
    std::string line, version, length, body;
    errno = 0;
    const bool has_line = read_line(line);
    if (!has_line && errno != 0) return unreadable_orders();
    if (!has_line || !parse_greeting(line, version))
        return "standard input has no orders of another daemon: starlingd node is started by Starling itself, through an "
               "agent that must pass standard input on";
    if (!understand_each_other(version, version_text())) {
        // The parent daemon has received this node's greeting, and prints a more detailed message.
        return "the daemon that started this one belongs to Starling " + version + ", this one to " + version_text() + "; " +
               kVersionRemedy;
    }
    bool complete = read_more(length, 4);
    const size_t size = complete ? Reader(length).number<uint32_t>() : 0;
    if (size <= kMostOrders) complete = complete && read_more(body, size);
    if (!complete && errno != 0) return unreadable_orders();
    if (!complete || size > kMostOrders || !decode(body, orders))
        return "the agent changed the parent daemon's orders; it must pass standard input on unchanged";
    orders.settings.version = version_text();
    return {};
}

// Runs in the process that the agent started. It waits until the daemon is connected, so that the agent can report success or failure. With
// `keep` it runs as long as the daemon, for agents that kill everything when they end.
int wait_for_daemon(int report, pid_t daemon, bool keep) {
    std::string line;
    char c = 0;
    for (ssize_t n; (n = ::read(report, &c, 1)) != 0;) {
        if (n < 0 && errno != EINTR) break;
        if (n > 0) line.push_back(c);
    }
    write_line(1, line);  // empty if the daemon ended early: its last words on standard error are the reason
    if (line != "connected\n") return 1;
    if (!keep) return 0;
    close(1);
    close(2);
    int status = 0;
    reap_process(daemon, status);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void close_agents_ends() {
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {0, 1, 2}) dup2(null, fd);
    if (null > 2) close(null);
}

int serve(Orders orders, int report, const MakeNodeService& make) {
    EventLoop loop;
    const auto connected = [&](const std::string& trouble) {
        write_line(report, trouble.empty() ? "connected\n" : "failed " + trouble + "\n");
        close(report);
        close_agents_ends();
        if (!trouble.empty()) loop.stop(1);
    };
    auto implementation = std::make_unique<Tree::Implementation>(loop, std::move(orders), make_agent_starter(loop), connected);
    Tree tree(std::move(implementation));
    const std::shared_ptr<void> service = make(loop, tree);
    return loop.run();
}

}  // namespace

int run_node(const MakeNodeService& make) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    write_line(1, greeting_line(version_text()));
    Orders orders;
    if (const std::string problem = read_orders(orders); !problem.empty()) {
        write_line(2, "starlingd: " + problem + "\n");
        return 1;
    }
    int report[2];
    if (pipe2(report, O_CLOEXEC) != 0 || chdir("/") != 0) {
        write_line(
            1, std::string("failed the daemon can't prepare its start: ") + std::strerror(errno) + limit_remedy(errno) + "\n");
        return 1;
    }
    const pid_t daemon = fork();
    if (daemon < 0) {
        write_line(1, std::string("failed no process can be started there: ") + std::strerror(errno) +
                          (errno == EAGAIN ? "; raise `ulimit -u` there, or end some processes" : "") + "\n");
        return 1;
    }
    if (daemon > 0) {
        close(report[1]);
        return wait_for_daemon(report[0], daemon, orders.settings.keep_agent);
    }
    close(report[0]);
    read_config(false);
    setsid();
    heed_all_signals();  // the daemon has no terminal that could hang up, and its ranks may be sent SIGHUP by their mpiexec
    // The agent's input and output must not stay open in the daemon. Standard error stays for early error messages.
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    if (null > 2) close(null);
    return serve(std::move(orders), report[1], make);
}

}  // namespace starling::launch
