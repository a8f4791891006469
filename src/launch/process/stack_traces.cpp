#include "launch/process/stack_traces.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "launch/common/process_start.h"

namespace starling::launch {

namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kAll{30}, kOne{10};

std::string proc_text(pid_t pid, const char* file) {
    char path[64], text[4096];
    std::snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    const ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n > 0 ? std::string(text, static_cast<size_t>(n)) : std::string();
}

std::string status_field(const std::string& status, const char* name) {
    const size_t at = status.find(std::string("\n") + name + ":");
    if (at == std::string::npos) return "?";
    const size_t begin = status.find_first_not_of(" \t", at + std::strlen(name) + 2);
    return status.substr(begin, status.find('\n', begin) - begin);
}

void print_proc(pid_t pid) {
    const std::string status = proc_text(pid, "status");
    const std::string waits = proc_text(pid, "wchan");
    std::fprintf(stderr, "  state %s, waiting in %s, threads %s, memory %s\n", status_field(status, "State").c_str(),
                 waits.empty() || waits == "0" ? "nothing" : waits.c_str(), status_field(status, "Threads").c_str(),
                 status_field(status, "VmRSS").c_str());
}

/// Runs a program that inspects process `pid` and prints the result. Returns false on failure or timeout.
bool print_by(const std::vector<std::string>& arguments, pid_t pid) {
    const std::vector<char*> argv = c_strings(arguments);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ProcessStart start;
    start.path = arguments[0].c_str();
    start.argv = argv.data();
    start.envp = environ;
    start.output = 2;
    start.error = null;
    const StartedProcess process = start_process(start);
    close(null);
    if (process.error != 0) {
        if (process.pid > 0) waitpid(process.pid, nullptr, 0);
        return false;
    }
    const auto give_up = SteadyClock::now() + kOne;
    int status = 0;
    while (waitpid(process.pid, &status, WNOHANG) == 0) {
        if (SteadyClock::now() > give_up) {
            kill(-process.pid, SIGKILL);
            waitpid(process.pid, nullptr, 0);
            kill(pid, SIGCONT);  // a killed debugger may leave the process stopped
            return false;
        }
        const timespec while_it_works{0, 5'000'000};
        nanosleep(&while_it_works, nullptr);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool print_by_gdb(const std::string& gdb, pid_t pid) {
    return print_by({gdb, "-p", std::to_string(pid), "-batch", "-nx", "-ex", "set debuginfod enabled off", "-ex",
                     "thread apply all -q backtrace 30"},
                    pid);
}

bool runs_python(pid_t pid) {
    char link[64], program[4096];
    std::snprintf(link, sizeof link, "/proc/%d/exe", pid);
    const ssize_t n = readlink(link, program, sizeof program);
    const std::string path(program, n > 0 ? static_cast<size_t>(n) : 0);
    return path.find("python", path.rfind('/') + 1) != std::string::npos;
}

}  // namespace

void print_stacks(const std::vector<std::pair<std::string, pid_t>>& processes) {
    const char* path = std::getenv("PATH");
    const std::string where = path ? path : "/usr/bin:/bin";
    const std::string gdb = find_program("gdb", where, "/"), py_spy = find_program("py-spy", where, "/");
    if (gdb.empty()) std::fprintf(stderr, "(install gdb to see stacks here)\n");
    const auto give_up = SteadyClock::now() + kAll;
    for (const auto& [name, pid] : processes) {
        std::fprintf(stderr, "---- %s, process %d\n", name.c_str(), pid);
        print_proc(pid);
        if (!py_spy.empty() && runs_python(pid) && SteadyClock::now() < give_up)
            print_by({py_spy, "dump", "--pid", std::to_string(pid)}, pid);
        if (!gdb.empty() && SteadyClock::now() < give_up) print_by_gdb(gdb, pid);
    }
}

}  // namespace starling::launch
