#include "launch/common/process_start.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "job/places.h"

namespace starling::launch {

namespace {

struct ExecOutcome {
    volatile int error = 0;
    const char* volatile step = "fork";
};

[[noreturn]] void fail_step(ExecOutcome& outcome, const char* step) {
    outcome.error = errno;
    outcome.step = step;
    _exit(127);
}

void place(int from, int to) {
    if (from == to) {
        fcntl(to, F_SETFD, 0);
    } else if (from >= 0) {
        dup2(from, to);
    }
}

// Starts on a core of `begin_on`, then allows all usable cores again. The kernel has no reason to move the process after the second call.
void begin_on_free_core(const ProcessStart& start) {
    if (sched_setaffinity(0, sizeof *start.begin_on, start.begin_on) != 0) return;
    // Use the system call: in a vfork child on its parent's memory, sched_getcpu() would return the parent's core.
    unsigned cpu = 0;
    if (syscall(SYS_getcpu, &cpu, nullptr, nullptr) == 0) start.place->store(job::CpuLocation::on(cpu));
    sched_setaffinity(0, sizeof *start.usable, start.usable);
}

// Returns whether a file may be a script: its first line has no zero byte, unlike those of programs. Shells apply this rule, too.
bool may_be_script(const char* path) {
    char begin[80];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t bytes = fd < 0 ? 0 : ::read(fd, begin, sizeof begin);
    if (fd >= 0) close(fd);
    for (ssize_t i = 0; i < bytes && begin[i] != '\n'; ++i)
        if (begin[i] == '\0') return false;
    return true;
}

// Runs in the vfork child, on the memory of the suspended parent: only system calls are allowed.
[[noreturn]] void become(const ProcessStart& start, pid_t launcher, char* const* script_argv, ExecOutcome& outcome) {
    if (start.guard_slot) *start.guard_slot = getpid();
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) _exit(127);  // The launcher died before prctl() could arrange this process's death.
    if (start.directory && chdir(start.directory) != 0) fail_step(outcome, "chdir");
    const int input = start.input >= 0 ? start.input : open("/dev/null", O_RDONLY | O_CLOEXEC);
    place(input, 0);
    place(start.output, 1);
    place(start.error, 2);
    if (start.cpus && sched_setaffinity(0, sizeof *start.cpus, start.cpus) != 0) fail_step(outcome, "bind");
    if (start.begin_on) begin_on_free_core(start);
    if (start.descriptors) setrlimit(RLIMIT_NOFILE, start.descriptors);
    signal(SIGPIPE, SIG_DFL);
    if (start.keeps_writing) signal(SIGTTOU, SIG_IGN);
    if (start.signals) sigprocmask(SIG_SETMASK, start.signals, nullptr);
    execve(start.path, start.argv, start.envp);
    if (errno == ENOEXEC) {
        // The shell runs a script without #!, as execvp does. It would take a program of another machine for a script as well.
        if (may_be_script(start.path)) execve("/bin/sh", script_argv, start.envp);
        errno = ENOEXEC;
    }
    fail_step(outcome, "exec");
}

// vfork returns twice, and the child runs on this stack frame. A separate function that is not inlined has no variables that the child
// could overwrite.
[[gnu::noinline]] pid_t spawn_child(const ProcessStart& start, pid_t launcher, char* const* script_argv, ExecOutcome& outcome) {
    const pid_t pid = vfork();
    if (pid == 0) become(start, launcher, script_argv, outcome);
    return pid;
}

bool is_program(const std::string& path) {
    struct stat status;
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

/// Returns why a file that exists is not found by the kernel: a script's interpreter or a program's loader is missing.
std::string missing_interpreter(const std::string& path) {
    std::string first_line;
    std::ifstream file(path);
    char begin[2] = {};
    if (!file.read(begin, 2) || begin[0] != '#' || begin[1] != '!' || !std::getline(file, first_line))
        return "; the file is there, but the loader it names is not";
    if (first_line.ends_with('\r'))
        return "; its first line ends with a carriage return, which belongs to the interpreter's name: convert the file "
               "(dos2unix)";
    const size_t from = std::min(first_line.find_first_not_of(" \t"), first_line.size());
    const size_t to = first_line.find_first_of(" \t", from);
    return "; the file is there, but its interpreter '" + first_line.substr(from, to - from) + "' is not";
}

std::string remedy(std::string_view program, std::string_view directory, const StartedProcess& process) {
    const std::string_view step = process.step;
    switch (process.error) {
        case EAGAIN:
            return "; the limit of processes is reached: raise `ulimit -u`, or end some processes";
        case ENOMEM:
            return "; free memory, or start fewer processes";
        case EMFILE:
        case ENFILE:
            return "; raise `ulimit -n`";
        case ENOEXEC:
            return "; it is built for another machine, or damaged";
        case E2BIG:
            return "; the arguments and the environment are too long together";
        default:
            break;
    }
    if (step == "bind") return "; start it with --bind-to none";
    if (step != "exec") return "";
    std::string path(program);
    if (path[0] != '/' && !directory.empty()) path = std::string(directory) + "/" + path;
    struct stat status;
    const bool there = stat(path.c_str(), &status) == 0;
    if (process.error == ENOENT && there) return missing_interpreter(path);
    if (process.error == EACCES && there && S_ISDIR(status.st_mode)) return "; it is a directory";
    if (process.error == EACCES && there && access(path.c_str(), X_OK) != 0) return "; make it executable (chmod +x)";
    return "";
}

}  // namespace

StartedProcess start_process(const ProcessStart& start) {
    std::vector<char*> script_argv{const_cast<char*>("/bin/sh"), const_cast<char*>(start.path)};
    for (char* const* a = start.argv + 1; start.argv[0] && *a; ++a) script_argv.push_back(*a);
    script_argv.push_back(nullptr);

    ExecOutcome outcome;
    StartedProcess result;
    result.pid = spawn_child(start, getpid(), script_argv.data(), outcome);
    result.error = result.pid < 0 ? errno : outcome.error;
    result.step = outcome.step;
    return result;
}

pid_t reap_process(pid_t pid, int& status, int options) {
    pid_t reaped;
    while ((reaped = waitpid(pid, &status, options)) < 0 && errno == EINTR) {}
    return reaped;
}

std::string find_program(std::string_view name, std::string_view path, std::string_view directory) {
    if (name.find('/') != std::string_view::npos) return std::string(name);
    if (name.empty()) return {};
    while (true) {
        const size_t colon = path.find(':');
        std::string candidate(path.substr(0, colon));
        if (candidate.empty()) candidate = ".";
        // A relative entry is relative to the directory where the program will run.
        if (candidate[0] != '/' && !directory.empty()) candidate = std::string(directory) + "/" + candidate;
        candidate.append("/").append(name);
        if (is_program(candidate)) return candidate;
        if (colon == std::string_view::npos) break;
        path.remove_prefix(colon + 1);
    }
    std::string local = std::string(directory.empty() ? "." : directory).append("/").append(name);
    return is_program(local) ? local : std::string();
}

std::string start_failure(std::string_view program, std::string_view directory, const StartedProcess& process) {
    if (!process.file.empty())
        return "the output file '" + process.file + "' can't be written: " + std::strerror(process.error);
    char here[4096] = "";
    const bool lost = directory.empty() && !getcwd(here, sizeof here);
    std::string text = "cannot start '" + std::string(program) + "' in ";
    text += lost ? "the current directory, which was deleted: "
                 : "directory '" + std::string(directory.empty() ? here : directory) + "': ";
    if (std::string_view(process.step) == "chdir") text += "the directory can't be entered: ";
    if (std::string_view(process.step) == "input") text += "its standard input, a pipe or /dev/null, can't be opened: ";
    text += process.error == 0 ? "the program is neither in PATH nor in that directory" : std::strerror(process.error);
    return process.error == 0 ? text : text + remedy(program, directory, process);
}

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
    std::vector<char*> pointers;
    pointers.reserve(strings.size() + 1);
    for (const std::string& s : strings) pointers.push_back(const_cast<char*>(s.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

}  // namespace starling::launch
