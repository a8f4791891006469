#include "agents.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/config.h"
#include "job/segment_view.h"
#include "launch/common/hosts.h"
#include "launch/common/process_start.h"
#include "launch/common/text.h"

extern char** environ;

namespace starling {

namespace {

constexpr size_t kMostHosts = 64;          ///< limit of hosts, since each needs an agent process here
constexpr size_t kMostPieces = 64;         ///< limit of reads, 64 KB each, from one host at a time
constexpr size_t kLongestLine = 32 << 20;  ///< limit of a line in bytes; enough for reports of many thousand processes
constexpr size_t kMostRefused = 1 << 20;   ///< limit in bytes of output that `starling` did not write, such as that of shells

std::vector<std::string> agent_words() {
    std::vector<std::string> words;
    if (config().launcher_agent) words = launch::words_of(config().launcher_agent);
    if (words.empty()) return {"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"};
    return words;
}

/// Returns whether the text may be the begin of a line that `starling` wrote. All others are refused without being parsed or kept: a pipe
/// takes 64 KB at a time, and on a busy host two processes may need a tenth of a second for each.
bool may_be_report(std::string_view text) { return text.empty() || text[0] == '{'; }

}  // namespace

Agents::~Agents() {
    for (Host& host : hosts_) {
        if (host.fd >= 0) close(host.fd);
        if (host.agent > 0) kill(host.agent, SIGTERM);
    }
    // Kill an agent that ignores SIGTERM.
    constexpr int kLooks = 100;
    for (int look = 0; look <= kLooks; ++look) {
        bool left = false;
        for (Host& host : hosts_) {
            if (host.agent > 0 && look == kLooks) kill(host.agent, SIGKILL);
            if (host.agent > 0 && waitpid(host.agent, nullptr, look == kLooks ? 0 : WNOHANG) != 0) host.agent = -1;
            left |= host.agent > 0;
        }
        if (!left) return;
        ::poll(nullptr, 0, look < 10 ? 1 : 10);
    }
}

void Agents::watch(const std::string& name) {
    const bool known = std::any_of(hosts_.begin(), hosts_.end(), [&](const Host& host) { return host.name == name; });
    if (known || name.empty()) return;
    if (hosts_.size() == kMostHosts) {
        ++left_out_;
        return;
    }
    Host& host = hosts_.emplace_back();
    host.name = name;
    // The host's name may come from a job's memory, and is put on a command line.
    if (launch::may_be_host(name)) return start(host);
    host.name = launch::printable(name);
    host.complaint = "the name has characters that no host name may have";
}

void Agents::start(Host& host) const {
    std::error_code ignored;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", ignored).string();
    std::vector<std::string> words = agent_words();
    words.insert(words.end(), {host.name, launch::shell_word(program)});
    words.insert(words.end(), words_.begin(), words_.end());
    const char* path = std::getenv("PATH");
    const std::string agent = launch::find_program(words[0], path ? path : "/usr/local/bin:/usr/bin:/bin", "");
    if (agent.empty()) {
        host.complaint = fmt::format("{}: {}", words[0], std::strerror(ENOENT));
        return;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        host.complaint = std::strerror(errno);
        return;
    }
    // The kernel kills the agent with this process, which mpiexec may kill at its end.
    const std::vector<char*> arguments = launch::c_strings(words);
    launch::ProcessStart order;
    order.path = agent.c_str();
    order.argv = arguments.data();
    order.envp = environ;
    order.output = order.error = ends[1];
    const launch::StartedProcess agent_process = launch::start_process(order);
    close(ends[1]);
    host.fd = ends[0];
    fcntl(host.fd, F_SETFL, O_NONBLOCK);
    host.agent = agent_process.error == 0 ? agent_process.pid : -1;
    if (agent_process.error != 0) host.complaint = fmt::format("{}: {}", words[0], std::strerror(agent_process.error));
}

// Reads a limited amount from each host: an agent may print without end, or never end a line, and must not delay the other hosts and the
// deadline.
void Agents::read(const Take& take) {
    for (Host& host : hosts_) {
        for (size_t pieces = 0; host.fd >= 0 && pieces < kMostPieces && read_piece(host, take); ++pieces) {}
    }
}

// Reads one piece. Returns false if no more data is available now.
bool Agents::read_piece(Host& host, const Take& take) {
    static char buffer[64 << 10];  // a user may limit stacks to 64 KB
    const ssize_t got = ::read(host.fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) return true;
    if (got < 0 && errno == EAGAIN) return false;
    if (got <= 0) {
        give_up(host, "the agent has ended");
        return false;
    }
    size_t begin = 0, from = host.unread.size();
    host.unread.append(buffer, static_cast<size_t>(got));
    for (size_t end; (end = host.unread.find('\n', from)) != std::string::npos; begin = from = end + 1)
        take_line(host, host.unread.substr(begin, end - begin), take);
    host.unread.erase(0, begin);
    const size_t refused = host.refused + (may_be_report(host.unread) ? 0 : host.unread.size());
    if (host.unread.size() > kLongestLine || refused > kMostRefused) {
        if (host.agent > 0) kill(host.agent, SIGTERM);
        host.complaint.clear();
        give_up(host, "the agent prints without end, but no output of starling is among it");
        return false;
    }
    return true;
}

void Agents::take_line(Host& host, const std::string& line, const Take& take) {
    const bool taken = may_be_report(line) && take(host.name, line);
    host.heard |= taken;
    host.refused = taken ? 0 : host.refused + line.size() + 1;
    const size_t length = line.ends_with('\r') ? line.size() - 1 : line.size();  // ssh ends its lines with both characters
    if (!taken && length > 0) host.complaint = job::printable(line.data(), std::min<size_t>(length, 120));
}

void Agents::give_up(Host& host, const char* why) {
    close(host.fd);
    host.fd = -1;
    host.unread.clear();
    if (host.complaint.empty()) host.complaint = why;
}

void Agents::wait(int milliseconds) const {
    std::vector<pollfd> fds;
    for (const Host& host : hosts_)
        if (host.fd >= 0) fds.push_back({host.fd, POLLIN, 0});
    ::poll(fds.data(), fds.size(), milliseconds);
}

bool Agents::settled() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [](const Host& host) { return host.heard || host.fd < 0; });
}

bool Agents::silent(const std::string& name) const {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](const Host& host) { return host.name == name && host.fd < 0; });
}

std::string Agents::trouble(bool ended) const {
    std::string text;
    for (const Host& host : hosts_)
        if (host.fd < 0 && (ended || !host.heard)) text += (text.empty() ? "" : "; ") + host.name + ": " + host.complaint;
    if (left_out_ > 0)
        text += fmt::format("{}more than {} other hosts: the rest is left out", text.empty() ? "" : "; ", kMostHosts);
    return text;
}

}  // namespace starling
