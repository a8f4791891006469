// lab-enter PID COMMAND...: runs a command inside the host whose process 1 is PID, with the caller's standard streams, environment and
// directory (`lab exec`). Unlike the agent it uses no network. The command ends with lab-enter; SIGINT, SIGTERM and SIGHUP are passed on.
// The exit code is the command's, or 128 plus the signal that killed it.
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "problem.h"

using namespace starling::lab;

namespace {

volatile sig_atomic_t inside = 0;

void pass_on(int number) {
    if (inside > 0) kill(static_cast<pid_t>(inside), number);
}

void join_namespaces(const std::string& pid) {
    constexpr const char* kinds[] = {"net", "uts", "ipc", "time", "pid", "mnt"};
    int fds[std::size(kinds)];
    for (size_t i = 0; i < std::size(kinds); ++i) {
        std::string path = "/proc/" + pid + "/ns/" + kinds[i];
        fds[i] = must(open(path.c_str(), O_RDONLY | O_CLOEXEC), "this host is not there");
    }
    // If the caller has a changed root, so has the host. Entering only the host's mounts would lead to the machine's root, where a cleanup
    // would delete foreign files.
    const std::string its_root = "/proc/" + pid + "/root";
    const int root = must(open(its_root.c_str(), O_PATH | O_CLOEXEC), "this host is not there");
    std::string directory(4096, '\0');
    bool known = getcwd(directory.data(), directory.size()) != nullptr;
    for (int fd : fds) must(setns(fd, 0), "entering a host (this needs root)");
    must(fchdir(root), "the host's root");
    must(chroot("."), "the host's root");
    if (!known || chdir(directory.c_str()) != 0) must(chdir("/"), "/");
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: lab-enter PID COMMAND...\n");
        return 2;
    }
    join_namespaces(argv[1]);
    for (int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, pass_on);
    pid_t child = must(fork(), "process in the host");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (int number : {SIGINT, SIGTERM, SIGHUP}) std::signal(number, SIG_DFL);
        execvp(argv[2], argv + 2);
        die(argv[2], 127);
    }
    inside = child;
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
