#include "session.h"

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <csignal>
#include <string>

#include "frames.h"
#include "problem.h"

namespace starling::lab {

int listen_for_agents() {
    int fd = must(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket for agents");
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(agent_port);
    must(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), "port for agents");
    must(listen(fd, 1024), "listening for agents");
    return fd;
}

namespace {

struct Command {
    pid_t pid = -1;
    int in = -1, out = -1, err = -1;  // this process's ends of the command's standard input, output and error pipes; -1: closed
};

// Runs the command with a login's environment: like ssh, it passes nothing of the caller's environment.
[[noreturn]] void become(const std::string& command) {
    clearenv();
    passwd* user = getpwuid(getuid());
    const char* home = user ? user->pw_dir : "/";
    setenv("HOME", home, 1);
    setenv("USER", user ? user->pw_name : "root", 1);
    setenv("LOGNAME", user ? user->pw_name : "root", 1);
    setenv("SHELL", "/bin/sh", 1);
    setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
    if (chdir(home) != 0) _exit(255);
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
}

Command start(const std::string& line) {
    int in[2], out[2], err[2];
    if (pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC) | pipe2(err, O_CLOEXEC)) die("cannot create the pipes of a command");
    pid_t pid = must(fork(), "process of a command");
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        become(line);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    return {pid, in[1], out[0], err[0]};
}

void close_end(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
}

// Forwards the command's output to the agent; closes this end when the command has closed its own.
bool forward_output(int connection, int& fd, Frame kind) {
    char data[65536];
    ssize_t n = read(fd, data, sizeof data);
    if (n < 0 && errno == EINTR) return true;
    if (n <= 0) {
        close_end(fd);
        return true;
    }
    return send_frame(connection, kind, data, static_cast<size_t>(n));
}

bool forward_input(int connection, int& fd) {
    Frame kind;
    std::string data;
    if (!receive_frame(connection, kind, data) || kind != Frame::input) return false;
    if (fd >= 0 && (data.empty() || !write_all(fd, data.data(), data.size()))) close_end(fd);
    return true;
}

int exit_code(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

}  // namespace

void serve_agent(int connection) {
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGCHLD, SIG_DFL);
    tune_agent_socket(connection);
    Frame kind;
    std::string line;
    if (!receive_frame(connection, kind, line) || kind != Frame::command) _exit(1);
    Command command = start(line);
    int life = must(static_cast<int>(syscall(SYS_pidfd_open, command.pid, 0)), "watching a command");
    while (command.out >= 0 || command.err >= 0 || life >= 0) {
        pollfd waits[4] = {{connection, POLLIN, 0}, {command.out, POLLIN, 0}, {command.err, POLLIN, 0}, {life, POLLIN, 0}};
        if (poll(waits, 4, -1) < 0) continue;
        if (waits[3].revents) close_end(life);
        if (waits[1].revents && !forward_output(connection, command.out, Frame::output)) _exit(1);
        if (waits[2].revents && !forward_output(connection, command.err, Frame::error)) _exit(1);
        if (waits[0].revents && !forward_input(connection, command.in)) _exit(1);
    }
    char code = static_cast<char>(exit_code(command.pid));
    send_frame(connection, Frame::end, &code, 1);
    _exit(0);
}

void serve_host(bool agents, std::string_view ready) {
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_BLOCK, &mask, nullptr);
    int children = must(signalfd(-1, &mask, SFD_CLOEXEC), "signalfd");
    int listener = agents ? listen_for_agents() : -1;
    if (!write_all(STDOUT_FILENO, ready.data(), ready.size())) die("cannot report that the host is ready");
    // Redirect standard output and error, so that a process that reads them until their end does not wait for this process.
    dup2(STDIN_FILENO, STDOUT_FILENO);
    dup2(STDIN_FILENO, STDERR_FILENO);
    while (true) {
        pollfd waits[2] = {{listener, POLLIN, 0}, {children, POLLIN, 0}};
        if (poll(waits, 2, -1) < 0) continue;
        signalfd_siginfo told;
        if (waits[1].revents && read(children, &told, sizeof told) > 0)
            while (waitpid(-1, nullptr, WNOHANG) > 0) {}
        if (!waits[0].revents) continue;
        int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (connection >= 0 && fork() == 0) {
            close(listener);
            serve_agent(connection);
        }
        close(connection);
    }
}

}  // namespace starling::lab
