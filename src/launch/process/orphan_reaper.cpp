#include "launch/process/orphan_reaper.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/linux_calls.h"
#include "base/process.h"
#include "launch/common/process_start.h"
#include "mpi.h"

namespace starling::launch {

namespace {

constexpr const char* kGuardName = "starling-guard";
constexpr useconds_t kPollPause = 10000;

// Returns whether a process has the mark in its environment. Uses plain calls and a static buffer, because the guard must work without free
// memory.
bool carries_mark(pid_t pid, const char* mark, size_t length) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/environ", find_shown_id(pid));
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    static char buffer[64 * 1024];
    size_t kept = 0;
    bool found = false;
    buffer[0] = '\0';
    for (;;) {
        const ssize_t n = ::read(fd, buffer + kept, sizeof buffer - 1 - kept);
        if (n <= 0) break;
        const size_t filled = kept + static_cast<size_t>(n);
        for (const char* at = buffer; at + length < buffer + filled;) {
            at = static_cast<const char*>(memmem(at, filled - static_cast<size_t>(at - buffer), mark, length));
            if (!at) break;
            const bool starts = at == buffer || at[-1] == '\0';
            const bool ends = at + length < buffer + filled ? at[length] == '\0' : false;
            if (starts && ends) {
                found = true;
                break;
            }
            ++at;
        }
        if (found) break;
        // An entry may be split between two reads. Keep the end of the buffer: one entry, and the byte before it.
        kept = filled < length + 2 ? filled : length + 2;
        std::memmove(buffer, buffer + filled - kept, kept);
    }
    close(fd);
    return found;
}

int kill_marked_once(const char* mark, size_t length) {
    DIR* proc = opendir("/proc");
    if (!proc) return 0;
    int killed = 0;
    const pid_t self = getpid();
    while (const dirent* entry = readdir(proc)) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        const pid_t pid = std::atoi(entry->d_name);
        if (pid == self || !carries_mark(pid, mark, length)) continue;
        if (kill(pid, SIGKILL) == 0) ++killed;
    }
    closedir(proc);
    return killed;
}

// Returns the memory from which the kernel shows this process's command line and environment to others.
std::string_view visible_origin(char** argv) {
    char* begin = argv[0];
    char* end = begin;
    for (char** a = argv; *a; ++a) end = *a + std::strlen(*a);
    for (char** e = environ; *e; ++e) {
        if (*e > begin && *e >= end && *e - end < 4096) end = *e + std::strlen(*e);
    }
    return begin ? std::string_view(begin, static_cast<size_t>(end - begin)) : std::string_view();
}

}  // namespace

int kill_marked(const std::string& mark) {
    int total = 0;
    for (int round = 0; round < 10; ++round) {
        const int killed = kill_marked_once(mark.c_str(), mark.size());
        if (killed == 0) break;
        total += killed;
        usleep(500);
    }
    return total;
}

bool OrphanReaper::start(std::string mark, char** argv) {
    mark_ = std::move(mark);
    argv_ = argv;
    void* memory =
        mmap(nullptr, kSlots * sizeof(pid_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fail(MPI_ERR_NO_MEM, "cannot reserve memory for the guard process: %s", std::strerror(errno));
        return false;
    }
    slots_ = static_cast<volatile pid_t*>(memory);
    return restart();
}

bool OrphanReaper::restart() {
    const pid_t launcher = getpid();
    const int launcher_fd = static_cast<int>(syscall(SYS_pidfd_open, launcher, 0));
    // The guard must not match the launcher's command line (`pkill -f`) or an outer launcher's mark, not even before its first instruction.
    // So both are erased before fork() and restored after it.
    const std::string_view origin = visible_origin(argv_);
    auto* const begin = const_cast<char*>(origin.data());
    const std::string kept(origin);
    char name[16] = "mpiexec";
    prctl(PR_GET_NAME, name);
    prctl(PR_SET_NAME, kGuardName);
    std::memset(begin, 0, origin.size());
    std::snprintf(begin, origin.size(), "%s", kGuardName);
    pid_ = launcher_fd < 0 ? -1 : fork();
    if (pid_ == 0) serve(launcher, launcher_fd);
    const int error = errno;
    std::memcpy(begin, kept.data(), kept.size());
    prctl(PR_SET_NAME, name);
    // Move the guard out of a process group that may be killed as a whole, before there is anything to guard.
    if (pid_ > 0) setpgid(pid_, pid_);
    if (launcher_fd >= 0) close(launcher_fd);
    if (pid_ > 0) return true;
    fail(MPI_ERR_OTHER, "cannot start the guard process: %s%s", std::strerror(error),
         error == EAGAIN ? "; raise `ulimit -u`, or end some processes" : limit_remedy(error));
    return false;
}

void OrphanReaper::serve(pid_t launcher, int launcher_fd) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    // Close all of the launcher's descriptors: otherwise a reader that waits for the end of a pipe would wait for the guard.
    dup2(launcher_fd, 0);
    syscall(SYS_close_range, 1u, ~0u, 0u);
    if (chdir("/") != 0) _exit(1);

    // A failed poll() says nothing about the launcher, but getppid() does.
    for (pollfd dead{0, POLLIN, 0}; getppid() == launcher && poll(&dead, 1, -1) <= 0;) usleep(kPollPause);
    for (uint32_t i = 0; i < kSlots && slots_[i] != -1; ++i) {
        if (slots_[i] > 1) kill(-slots_[i], SIGKILL);
    }
    kill_marked(mark_);
    _exit(0);
}

volatile pid_t* OrphanReaper::acquire_slot() {
    uint32_t index;
    if (free_count_ > 0) {
        index = free_[--free_count_];
    } else if (used_ + 1 < kSlots) {
        index = used_++;
        slots_[used_] = -1;  // The value -1 tells the guard that no slot follows.
    } else {
        // Every slot has been used: search for a released one.
        index = kSlots - 2;
        for (uint32_t i = 0; i + 1 < kSlots; ++i) {
            if (slots_[i] == 0) index = i;
        }
    }
    slots_[index] = 0;
    return &slots_[index];
}

void OrphanReaper::release_slot(volatile pid_t* slot) {
    *slot = 0;
    if (free_count_ < 64) free_[free_count_++] = static_cast<uint32_t>(slot - slots_);
}

void OrphanReaper::dismiss() {
    if (pid_ <= 0) return;
    // Where a filter or a security module forbids the signal, the guard ends after this process.
    const bool ends = kill(pid_, SIGKILL) == 0 || errno == ESRCH;
    int status = 0;
    if (ends) reap_process(pid_, status);
    pid_ = -1;
}

}  // namespace starling::launch
