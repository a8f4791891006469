// Starts a daemon on another host: runs the launch agent, passes it the orders, and interprets its output and exit.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/linux_calls.h"
#include "base/version.h"
#include "base/wire.h"
#include "launch/common/hosts.h"
#include "launch/common/process_start.h"
#include "launch/common/text.h"
#include "launch/tree/starter.h"

extern char** environ;

namespace starling::launch {

namespace {

constexpr size_t kMostOutput = 64 * 1024;  // limit for an agent that prints without end
constexpr std::chrono::milliseconds kLastWords{200};

std::vector<std::string> command_for(const Orders& orders) {
    const TreeSettings& s = orders.settings;
    if (is_this_machine(orders.self.name)) return {s.program, "node"};
    std::vector<std::string> words = s.agent;
    if (words.empty()) {
        // ssh should time out and report the reason before start_limit expires here. It must never prompt, since no user could answer. All
        // other settings come from the user's ssh configuration.
        const auto seconds = std::max<int64_t>(1, s.start_limit.count() * 2 / 3000);
        words = {"ssh", "-x", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=" + std::to_string(seconds)};
    }
    words.push_back(orders.self.name);
    words.push_back(shell_word(s.program));
    words.push_back("node");
    return words;
}

// Returns the last two non-empty lines as one.
std::string last_words(const std::string& text) {
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        std::string line = text.substr(at, end - at);
        line.erase(std::remove_if(line.begin(), line.end(), [](unsigned char c) { return c < 32 || c == 127; }), line.end());
        while (!line.empty() && (line.back() == ' ' || line.back() == '.')) line.pop_back();
        if (!line.empty()) lines.push_back(line.substr(0, 300));
        at = end + 1;
    }
    std::string result;
    for (size_t i = lines.size() > 2 ? lines.size() - 2 : 0; i < lines.size(); ++i)
        result += (result.empty() ? "" : "; ") + lines[i];
    return result;
}

class AgentStart : public NodeStart {
  public:
    AgentStart(EventLoop& loop, const Orders& orders, std::function<void(const std::string&)> on_failed)
        : loop_(loop), orders_(orders), on_failed_(std::move(on_failed)) {
        // The length comes first, so that a node recognizes the end of its orders even if the agent keeps the stream open.
        const std::string body = encode(orders);
        input_ = greeting_line(orders.settings.version) + Writer().number(static_cast<uint32_t>(body.size())).take() + body;
        launch();
    }

    ~AgentStart() override {
        if (pid_ > 0) {
            kill(-pid_, SIGKILL);
            int status = 0;
            if (pid_fd_ >= 0) reap_process(pid_, status);
        }
        for (int* fd : {&in_, &out_, &err_, &pid_fd_}) drop(*fd);
        if (timer_ != 0) loop_.cancel(timer_);
    }

    bool finished() const override { return pid_ < 0 && out_ < 0 && err_ < 0; }

    std::string greeting_text() const override {
        if (version_seen_) return "the daemon was started there but has not connected";
        return last_words(complaints_);
    }

    bool child_exited(pid_t pid, int status) override {
        if (pid != pid_) return false;
        on_exit(status);
        return true;
    }

  private:
    void launch();
    void watch_pipes();
    void write_input();
    void read_from(int& fd, std::string& text);
    void read_output();
    void on_pid_ready();
    void on_exit(int status);
    void conclude();
    std::string reason() const;
    void fail_later(const std::string& why);
    void fail(const std::string& why);
    void drop(int& fd) {
        if (fd < 0) return;
        loop_.forget(fd);
        close(fd);
        fd = -1;
    }

    EventLoop& loop_;
    Orders orders_;
    std::function<void(const std::string&)> on_failed_;
    std::string input_;  ///< bytes that are not written yet to the agent's standard input
    std::string output_, complaints_;
    std::string program_;  ///< name of the launch agent's program, for messages
    pid_t pid_ = -1;
    int status_ = 0;
    int in_ = -1, out_ = -1, err_ = -1, pid_fd_ = -1;
    bool version_seen_ = false;
    bool connected_ = false;  ///< true: the node has reported that it is connected
    EventLoop::TimerId timer_ = 0;
};

void AgentStart::launch() {
    const std::vector<std::string> words = command_for(orders_);
    const char* path = getenv("PATH");
    program_ = words[0];
    const std::string file = find_program(words[0], path ? path : "/usr/local/bin:/usr/bin:/bin", "");
    if (file.empty()) {
        return fail_later("the agent '" + words[0] + "' is not in PATH; install it, or name another one with --launcher-agent");
    }
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    const bool piped = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0;
    StartedProcess process;
    if (piped) {
        const std::vector<char*> argv = c_strings(words);
        sigset_t none;
        sigemptyset(&none);
        ProcessStart start;
        start.path = file.c_str();
        start.argv = argv.data();
        start.envp = environ;
        start.input = in[0];
        start.output = out[1];
        start.error = err[1];
        start.signals = &none;
        process = start_process(start);
    } else {
        process.error = errno;
        process.step = "pipe";
    }
    for (const int fd : {in[0], out[1], err[1]}) {
        if (fd >= 0) close(fd);
    }
    in_ = in[1];
    out_ = out[0];
    err_ = err[0];
    if (process.error != 0) {
        int status = 0;
        if (process.pid > 0) reap_process(process.pid, status);
        return fail_later("cannot run '" + words[0] + "': " + std::strerror(process.error) + limit_remedy(process.error));
    }
    pid_ = process.pid;
    watch_pipes();
}

void AgentStart::watch_pipes() {
    for (const int fd : {in_, out_, err_}) fcntl(fd, F_SETFL, O_NONBLOCK);
    pid_fd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
    loop_.watch(in_, EPOLLOUT, [this](uint32_t) { write_input(); });
    loop_.watch(out_, EPOLLIN, [this](uint32_t) { read_from(out_, output_); });
    loop_.watch(err_, EPOLLIN, [this](uint32_t) { read_from(err_, complaints_); });
    if (pid_fd_ >= 0) loop_.watch(pid_fd_, EPOLLIN, [this](uint32_t) { on_pid_ready(); });
}

void AgentStart::write_input() {
    const ssize_t n = ::write(in_, input_.data(), input_.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) input_.erase(0, static_cast<size_t>(n));
    // A broken pipe: the agent is about to print the reason.
    if (n < 0 || input_.empty()) drop(in_);
}

void AgentStart::read_from(int& fd, std::string& text) {
    char buffer[4096];
    const ssize_t n = ::read(fd, buffer, sizeof buffer);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) {
        text.append(buffer, static_cast<size_t>(n));
        if (text.size() > kMostOutput) text.erase(0, text.size() - kMostOutput / 2);
    } else {
        drop(fd);
    }
    if (&text == &output_) return read_output();
    conclude();
}

// Handles the node's lines. Lines that a login script prints before and after are skipped.
void AgentStart::read_output() {
    for (size_t end; (end = output_.find('\n')) != std::string::npos;) {
        const std::string line = output_.substr(0, end);
        output_.erase(0, end + 1);
        std::string version;
        if (!version_seen_ && parse_greeting(line, version)) {
            version_seen_ = true;
            if (understand_each_other(version, orders_.settings.version)) continue;
            return fail(orders_.settings.program + " belongs to Starling " + version + ", but this is Starling " +
                        orders_.settings.version +
                        "; install the same version on all hosts, or name it with --prefix: " + kVersionRemedy);
        }
        if (version_seen_ && line == "connected") connected_ = true;
        if (version_seen_ && line.starts_with("failed ")) return fail(line.substr(7));
    }
    conclude();
}

void AgentStart::on_pid_ready() {
    int status = 0;
    const pid_t pid = reap_process(pid_, status, WNOHANG);
    if (pid == 0) return;
    // Another part of the program that waits for all children may have reaped this one first. Then child_exited() reports the status, or it
    // stays unknown.
    on_exit(pid == pid_ ? status : -1);
}

void AgentStart::on_exit(int status) {
    pid_ = -1;
    status_ = status;
    drop(pid_fd_);
    // Read the rest of its output first; the timer is for pipes that another process holds open.
    timer_ = loop_.after(kLastWords, [this] {
        timer_ = 0;
        drop(out_);
        drop(err_);
        conclude();
    });
    conclude();
}

// Reports the failure once the process has ended and all its output is read.
void AgentStart::conclude() {
    if (pid_ > 0 || out_ >= 0 || err_ >= 0 || connected_) return;
    fail(reason());
}

std::string AgentStart::reason() const {
    const std::string said = last_words(complaints_);
    const int code = status_ >= 0 && WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
    const std::string& program = orders_.settings.program;
    if (!version_seen_ && code == 127)
        return "starlingd was not found " + (program.find('/') == program.npos ? "in PATH" : "at " + program) +
               "; install Starling there, or name its directory with --prefix";
    if (!version_seen_ && code == 126)
        return program + " can't be executed there" + (said.empty() ? "" : ": " + said) + "; install Starling there";
    if (!said.empty()) return said;
    if (status_ > 0 && WIFSIGNALED(status_)) return program_ + " was killed by signal " + std::to_string(WTERMSIG(status_));
    if (version_seen_) return "its daemon ended before it was connected";
    return program_ + " ended" + (code >= 0 ? " with code " + std::to_string(code) : "") + " and started no daemon";
}

void AgentStart::fail_later(const std::string& why) {
    for (int* fd : {&in_, &out_, &err_}) {
        if (*fd >= 0) close(*fd);
        *fd = -1;
    }
    timer_ = loop_.after(std::chrono::milliseconds(0), [this, why] {
        timer_ = 0;
        fail(why);
    });
}

void AgentStart::fail(const std::string& why) {
    if (const auto tell = std::exchange(on_failed_, nullptr)) tell(why);
}

class AgentStarter : public NodeStarter {
  public:
    explicit AgentStarter(EventLoop& loop) : loop_(loop) {
        signal(SIGPIPE, SIG_IGN);  // an agent may end without reading its input
    }
    std::unique_ptr<NodeStart> start(const Orders& orders, std::function<void(const std::string&)> on_failed) override {
        return std::make_unique<AgentStart>(loop_, orders, std::move(on_failed));
    }

  private:
    EventLoop& loop_;
};

}  // namespace

std::unique_ptr<NodeStarter> make_agent_starter(EventLoop& loop) { return std::make_unique<AgentStarter>(loop); }

}  // namespace starling::launch
