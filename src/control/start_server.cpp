#include "control/start_server.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "job/descriptor_passing.h"
#include "job/environment.h"
#include "mpi.h"

/// glibc's clone() by the name that ThreadSanitizer does not intercept. Its interceptor takes every child for a fork, and with CLONE_VM
/// would make the parent's own thread ignore all synchronization from then on.
extern "C" int __clone(int (*run)(void*), void* stack, int flags, void* argument, ...);

namespace starling::control {

namespace {

constexpr size_t kStack = 64 * 1024;

struct Launch {
    const char* program;
    char* const* argv;
    char* const* envp;
    int ready, inherited;
    bool keep_output;
    char* inner_stack;
    volatile int error = 0;
};

// inner() and outer() run in the caller's memory while the caller is suspended, so they make system calls only. The sanitizers do not know
// their stack and must not check them.
[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] int inner(void* argument) {
    auto& launch = *static_cast<Launch*>(argument);
    setsid();
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    if (!launch.keep_output) {
        dup2(null, 1);
        dup2(null, 2);
    }
    fcntl(launch.ready, F_SETFD, 0);
    if (launch.inherited > 2) fcntl(launch.inherited, F_SETFD, 0);
    execve(launch.program, launch.argv, launch.envp);
    launch.error = errno;
    _exit(127);
}

[[gnu::no_sanitize_address, gnu::no_sanitize_thread]] int outer(void* argument) {
    auto& launch = *static_cast<Launch*>(argument);
    if (__clone(inner, launch.inner_stack + kStack, CLONE_VM | CLONE_VFORK, argument) < 0) launch.error = errno;
    _exit(0);
}

std::string executable(const std::string& path) { return access(path.c_str(), X_OK) == 0 ? path : std::string(); }

std::string search_path(const char* name) {
    const char* path = std::getenv("PATH");
    for (const char* at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *at;) {
        const size_t length = strcspn(at, ":");
        if (length > 0) {
            std::string found = executable(std::string(at, length) + "/" + name);
            if (!found.empty()) return found;
        }
        at += length;
        if (*at == ':') ++at;
    }
    return {};
}

// Returns the environment without the variables that mark a process as a rank of a job: the server outlives the job.
std::vector<char*> unmarked_environment() {
    std::vector<char*> entries;
    for (char** entry = environ; entry && *entry; ++entry) {
        bool mark = false;
        for (const std::string_view name : {"STARLING_JOB=", "STARLING_RANK=", "STARLING_LAUNCHER="}) {
            mark = mark || std::strncmp(*entry, name.data(), name.size()) == 0;
        }
        if (!mark) entries.push_back(*entry);
    }
    entries.push_back(nullptr);
    return entries;
}

bool wait_until_ready(int fd, int seconds, std::string& problem) {
    std::string line;
    char c = 0;
    pollfd ready{fd, POLLIN, 0};
    while (line.size() < 1000) {
        const int n = ::poll(&ready, 1, seconds * 1000);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) {
            problem = "it was not ready within " + std::to_string(seconds) + " s";
            return false;
        }
        const ssize_t got = ::read(fd, &c, 1);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0 || c == '\n') break;
        if (c != kStillStarting || !line.empty()) line.push_back(c);
    }
    if (line == "ready") return true;
    problem = line.empty() ? "it ended at once" : line;
    return false;
}

}  // namespace

std::string find_starlingd() {
    Dl_info info;
    char self[PATH_MAX];
    // dladdr returns the library's path, or the program's name as it was called, which may not be a path.
    const bool in_object = dladdr(reinterpret_cast<void*>(&find_starlingd), &info) && info.dli_fname;
    for (const char* origin : {in_object ? info.dli_fname : "", "/proc/self/exe"}) {
        if (!realpath(origin, self)) continue;
        std::string directory(self);
        directory.erase(directory.rfind('/'));
        // bin/, lib/, lib/<architecture>/, and a test's directory in the build tree.
        for (const char* way : {"/", "/../bin/", "/../../bin/", "/../../../bin/"}) {
            std::string found = executable(directory + way + "starlingd");
            if (!found.empty()) return found;
        }
    }
    return search_path("starlingd");
}

bool start_detached(const std::string& program, const char* const* arguments, bool keep_output, std::string& problem,
                    int seconds, int inherited) {
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) != 0) {
        problem = std::string("pipe: ") + std::strerror(errno) + "; raise `ulimit -n`";
        return false;
    }
    void* stacks = mmap(nullptr, 2 * kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stacks == MAP_FAILED) {
        problem = std::strerror(errno);
        close(pipe_ends[0]);
        close(pipe_ends[1]);
        return false;
    }
    char ready[16];
    std::snprintf(ready, sizeof ready, "%d", pipe_ends[1]);
    std::vector<char*> argv{const_cast<char*>(program.c_str())};
    for (; *arguments; ++arguments) argv.push_back(const_cast<char*>(*arguments));
    argv.push_back(ready);
    argv.push_back(nullptr);
    const std::vector<char*> envp = unmarked_environment();
    auto* stack = static_cast<char*>(stacks);
    Launch launch{program.c_str(), argv.data(), envp.data(), pipe_ends[1], inherited, keep_output, stack + kStack};

    // No signal handler of the application may run in a child that shares its memory.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t pid = __clone(outer, stack + kStack, CLONE_VM | CLONE_VFORK, &launch);
    int error = pid < 0 ? errno : launch.error;
    if (pid > 0) {
        while (waitpid(pid, nullptr, __WCLONE) < 0 && errno == EINTR) {}
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    munmap(stacks, 2 * kStack);
    close(pipe_ends[1]);
    bool started = false;
    if (error != 0) {
        problem = std::strerror(error);
    } else {
        started = wait_until_ready(pipe_ends[0], seconds, problem);
    }
    close(pipe_ends[0]);
    return started;
}

int start_server(job::JobSegment& own) {
    const std::string program = find_starlingd();
    if (program.empty()) {
        return fail(MPI_ERR_OTHER,
                    "this program runs without mpiexec and needs starlingd to start or connect to other processes, but "
                    "starlingd is neither beside the MPI library nor in PATH; add Starling's bin directory to PATH");
    }
    const std::string address = to_string(own.address());
    const char* const arguments[] = {"serve", address.c_str(), nullptr};
    std::string problem;
    // The server opens the segment through this process's /proc, if the kernel allows it; else it inherits the descriptor.
    const int inherited = job::is_closed_to_others() ? own.fd() : -1;
    if (!start_detached(program, arguments, true, problem, 10, inherited)) {
        return fail(MPI_ERR_OTHER, "cannot start %s: %s", program.c_str(), problem.c_str());
    }
    if (own.header().control_socket[0] == '\0') {
        return fail(MPI_ERR_OTHER, "%s belongs to another version of Starling than this library; install both from one release",
                    program.c_str());
    }
    return MPI_SUCCESS;
}

}  // namespace starling::control
