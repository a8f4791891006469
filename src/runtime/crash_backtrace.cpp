#include "runtime/crash_backtrace.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/state.h"

namespace starling::runtime {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
/// Limit of the time in which the stack is read and printed.
constexpr int kLongestMs = 5000, kStepMs = 5;

STARLING_STATE char program[PATH_MAX] = "";
STARLING_STATE char rank_text[24] = "";
STARLING_STATE pid_t crashable = 0;  ///< the rank's process; its forked children print nothing
STARLING_STATE int busy = 0;         ///< 1: a thread is printing

/// Writes a number without any function that a signal handler must not call.
void write_number(char (&text)[24], uint64_t number) {
    char digits[24];
    int count = 0;
    do {
        digits[count++] = static_cast<char>('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (int i = 0; i < count; ++i) text[i] = digits[count - 1 - i];
    text[count] = '\0';
}

uint64_t crash_address(const void* context) {
    const auto* state = static_cast<const ucontext_t*>(context);
#if defined __x86_64__
    return static_cast<uint64_t>(state->uc_mcontext.gregs[REG_RIP]);
#elif defined __aarch64__
    return state->uc_mcontext.pc;
#else
    return static_cast<void>(state), 0;
#endif
}

/// Starts `starling stacks` for this thread and waits for its end.
void print_stack(int signal, uint64_t address) {
    char pid[24], thread[24], number[24], from[24];
    write_number(pid, static_cast<uint64_t>(getpid()));
    write_number(thread, static_cast<uint64_t>(syscall(SYS_gettid)));
    write_number(number, static_cast<uint64_t>(signal));
    write_number(from, address);
    const char* words[] = {program,    "stacks", "--rank", rank_text, "--thread", thread,
                           "--signal", number,   "--from", from,      pid,        nullptr};
    // Neither handlers of fork nor of SIGCHLD run: the child has no exit signal.
    const long child = syscall(SYS_clone, 0, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        execve(program, const_cast<char* const*>(words), environ);
        _exit(127);
    }
    if (child < 0) return;
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    for (int waited = 0; waited < kLongestMs; waited += kStepMs) {
        if (waitpid(static_cast<pid_t>(child), nullptr, WNOHANG | __WALL) != 0) return;
        const timespec step{0, kStepMs * 1'000'000};
        nanosleep(&step, nullptr);
    }
    kill(static_cast<pid_t>(child), SIGKILL);
}

/// The default action is in effect again when this runs (SA_RESETHAND): a return repeats the faulting instruction.
void on_crash(int signal, siginfo_t* info, void* context) {
    const int error = errno;
    if (getpid() == crashable && __atomic_exchange_n(&busy, 1, __ATOMIC_ACQ_REL) == 0)
        print_stack(signal, crash_address(context));
    // A signal that another process or raise() has sent does not come again by itself.
    if (info->si_code <= 0) raise(signal);
    errno = error;
}

/// Returns whether only the superuser, this user and the owner of this library, whose code runs here anyway, may change the file or
/// directory.
bool is_trusted(const char* path) {
    struct stat status {
    }, library{};
    if (stat(path, &status) != 0 || (status.st_mode & S_IWOTH) != 0) return false;
    if (status.st_uid == 0 || status.st_uid == geteuid()) return true;
    Dl_info info{};
    return dladdr(reinterpret_cast<void*>(&print_backtraces), &info) && info.dli_fname && stat(info.dli_fname, &library) == 0 &&
           status.st_uid == library.st_uid;
}

/// Sets `program` to the path of `starling` beside the owner's program. Returns false if there is none that may be executed.
bool find_starling(int32_t owner) {
    if (owner <= 0 || owner == getpid()) return false;
    char link[32];
    std::snprintf(link, sizeof link, "/proc/%d/exe", owner);
    const ssize_t length = readlink(link, program, sizeof program - 1);
    if (length <= 0 || program[0] != '/') return false;
    program[length] = '\0';
    char* name = std::strrchr(program, '/') + 1;
    if (static_cast<size_t>(program + sizeof program - name) < sizeof "starling") return false;
    *name = '\0';
    if (!is_trusted(program)) return false;
    std::strcpy(name, "starling");
    return access(program, X_OK) == 0 && is_trusted(program);
}

}  // namespace

void print_backtraces(int32_t owner, uint32_t rank) {
    if (!find_starling(owner)) return;
    write_number(rank_text, rank);
    crashable = getpid();
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
    for (const int signal : kSignals) {
        struct sigaction before {};
        if (sigaction(signal, nullptr, &before) == 0 && !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL)
            sigaction(signal, &action, nullptr);
    }
}

}  // namespace starling::runtime
