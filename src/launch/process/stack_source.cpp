#include "launch/process/stack_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/process.h"
#include "launch/common/file_text.h"
#include "launch/common/process_start.h"
#include "launch/process/stack_walk.h"

namespace starling::launch {

namespace {

constexpr size_t kMostText = 1 << 20;

std::string status_field(const std::string& status, const char* name) {
    const size_t at = status.find(std::string("\n") + name + ":");
    if (at == std::string::npos) return "?";
    const size_t begin = status.find_first_not_of(" \t", at + std::strlen(name) + 2);
    return status.substr(begin, status.find('\n', begin) - begin);
}

/// Reads what a child writes until it closes the pipe. Returns false if the time is over.
bool read_until(int fd, StackClock::time_point give_up, std::string& text) {
    char buffer[16 << 10];
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(give_up - StackClock::now()).count();
        pollfd ready{fd, POLLIN, 0};
        if (left <= 0) return false;
        const int n = poll(&ready, 1, static_cast<int>(left));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        const ssize_t got = ::read(fd, buffer, sizeof buffer);
        if (got == 0) return true;
        if (got < 0 && errno != EINTR) return false;
        if (got > 0 && text.size() < kMostText) text.append(buffer, static_cast<size_t>(got));
    }
}

/// Reads the output of a child, ends it and returns whether it succeeded in time. `pid`: the process that the child traces.
bool collect(pid_t child, int fd, pid_t pid, StackClock::time_point give_up, std::string& text) {
    const bool complete = read_until(fd, give_up, text);
    close(fd);
    if (!complete) kill(child, SIGKILL);
    int status = 0;
    reap_process(child, status);
    if (complete) return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    kill(pid, SIGCONT);  // a killed debugger may leave the process stopped
    return false;
}

/// Runs a program and returns its output; empty if it fails or the time is over.
std::string output_of(const std::vector<std::string>& arguments, pid_t pid, StackClock::time_point give_up) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return {};
    const std::vector<char*> argv = c_strings(arguments);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ProcessStart start;
    start.path = arguments[0].c_str();
    start.argv = argv.data();
    start.envp = environ;
    start.output = ends[1];
    start.error = null;
    const StartedProcess process = start_process(start);
    close(null);
    close(ends[1]);
    std::string text;
    if (process.pid < 0) {
        close(ends[0]);
        return {};
    }
    return collect(process.pid, ends[0], pid, give_up, text) ? text : std::string();
}

std::string indented(const std::string& text) {
    std::istringstream lines(text);
    std::string all;
    for (std::string line; std::getline(lines, line);)
        if (!line.empty()) all += "  " + line + "\n";
    return all;
}

void write_all(int fd, const std::string& text) {
    for (size_t done = 0; done < text.size();) {
        const ssize_t n = ::write(fd, text.data() + done, text.size() - done);
        if (n <= 0) return;
        done += static_cast<size_t>(n);
    }
}

}  // namespace

ProcessFacts process_facts(pid_t pid) {
    const std::string folder = "/proc/" + std::to_string(find_shown_id(pid)) + "/";
    const std::string status = text_of_file(folder + "status"), waits = text_of_file(folder + "wchan");
    ProcessFacts facts{status_field(status, "State"), waits.empty() || waits == "0" ? "nothing" : waits,
                       status_field(status, "Threads")};
    facts.memory_kb = std::strtoul(status_field(status, "VmRSS").c_str(), nullptr, 10);
    return facts;
}

bool runs_python(pid_t pid) {
    char link[64], program[4096];
    std::snprintf(link, sizeof link, "/proc/%d/exe", find_shown_id(pid));
    const ssize_t n = readlink(link, program, sizeof program);
    const std::string path(program, n > 0 ? static_cast<size_t>(n) : 0);
    return path.find("python", path.rfind('/') + 1) != std::string::npos;
}

std::string read_stacks(pid_t pid, bool all_frames, StackClock::time_point give_up) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return "  no stack: no pipe\n";
    const pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        ProcessStacks stacks = walk_stacks(pid);
        if (!all_frames) hide_library_frames(stacks);
        write_all(ends[1], stacks_text(stacks, all_frames));
        _exit(0);
    }
    close(ends[1]);
    std::string text;
    if (child < 0) {
        close(ends[0]);
        return "  no stack: no process could be started\n";
    }
    return collect(child, ends[0], pid, give_up, text) ? text : "  no stack: reading it took too long\n";
}

std::string stacks_by_gdb(const std::string& gdb, pid_t pid, StackClock::time_point give_up) {
    const std::string text =
        output_of({gdb, "-p", std::to_string(find_shown_id(pid)), "-batch", "-nx", "-iex", "set auto-load off", "-ex",
                   "set debuginfod enabled off", "-ex", "thread apply all -q backtrace 30"},
                  pid, give_up);
    return text.empty() ? "  no stack: gdb failed\n" : indented(text);
}

std::string stacks_by_py_spy(const std::string& py_spy, pid_t pid, StackClock::time_point give_up) {
    std::istringstream lines(output_of({py_spy, "dump", "--pid", std::to_string(find_shown_id(pid))}, pid, give_up));
    std::string all;
    // Equal stacks are merged, so lines with numbers of processes and threads are shortened.
    for (std::string line; std::getline(lines, line);) {
        if (line.empty() || line.starts_with("Process ") || line.starts_with("Python v")) continue;
        if (line.starts_with("Thread "))
            line.erase(7, std::min(line.find_first_not_of("0123456789xabcdefABCDEF", 7), line.size()) - 7);
        all += "  " + line + "\n";
    }
    return all;
}

}  // namespace starling::launch
