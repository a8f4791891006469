#include "base/process.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "base/state.h"

namespace starling {

namespace {
enum class ProcView : uint8_t { unknown, own_namespace, other };
STARLING_STATE std::atomic<ProcView> proc_view = ProcView::unknown;

ProcView find_proc_view() {
    char text[16];
    const ssize_t length = readlink("/proc/self", text, sizeof text - 1);
    if (length <= 0) return ProcView::other;
    text[length] = '\0';
    return std::strtol(text, nullptr, 10) == getpid() ? ProcView::own_namespace : ProcView::other;
}
}  // namespace

bool proc_shows_pids() {
    if (proc_view.load(std::memory_order_relaxed) == ProcView::unknown)
        proc_view.store(find_proc_view(), std::memory_order_relaxed);
    return proc_view.load(std::memory_order_relaxed) == ProcView::own_namespace;
}

namespace {

/// Fields of /proc/<pid>/stat; the state, after the name, is number 1.
constexpr int kParent = 2, kFlags = 7, kThreads = 18, kStart = 20;
/// The flag of a thread that ends and executes no more of its program (PF_EXITING of the kernel). A zombie has it, too.
constexpr unsigned long kExiting = 4;

/// Reads /proc/<pid>/stat and returns the text after the name, which ends at the last parenthesis; it starts with the state. Returns null
/// with errno if it cannot be read.
const char* read_status(pid_t pid, char (&text)[512], pid_t thread = 0) {
    errno = ENOENT;
    if (!proc_shows_pids()) return nullptr;
    char path[48];
    if (thread == 0)
        std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    else
        std::snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, thread);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return nullptr;
    const ssize_t got = read(fd, text, sizeof text - 1);
    const int error = errno;
    close(fd);
    errno = got < 0 ? error : EINVAL;
    if (got <= 0) return nullptr;
    text[got] = '\0';
    const char* name_end = std::strrchr(text, ')');
    return name_end && name_end[1] == ' ' ? name_end + 2 : nullptr;
}

/// Returns the field number `count`, counted from `state` as number 1, or null.
const char* field_behind(const char* state, int count) {
    const char* field = state;
    for (int i = 1; field && i < count; ++i)
        if ((field = std::strchr(field, ' '))) ++field;
    return field;
}

bool is_exiting(const char* state) {
    if (*state == 'Z' || *state == 'X') return true;
    const char* flags = field_behind(state, kFlags);
    return flags && (std::strtoul(flags, nullptr, 10) & kExiting) != 0;
}

/// Returns the number of threads that the kernel counts, at least 1; 0 if the text does not show it.
int thread_count(const char* state) {
    const char* threads = field_behind(state, kThreads);
    return threads ? static_cast<int>(std::strtol(threads, nullptr, 10)) : 0;
}

constexpr int kMostThreads = 128;

/// Writes the first threads of a process that /proc lists to `threads`. Returns the number of all, or -1 if they cannot be read.
/// Allocates nothing, unlike opendir(): a thread's first allocation takes 50 µs.
int list_threads(pid_t pid, pid_t (&threads)[kMostThreads]) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/%d/task", pid);
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return -1;
    constexpr long kLength = 16, kName = 19;  // offsets in linux_dirent64, after the inode and the position
    alignas(8) char entries[1024];
    int count = 0;
    long got = 0;
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for (long at = 0; at < got;) {
            uint16_t length;
            std::memcpy(&length, entries + at + kLength, sizeof length);
            const auto thread = static_cast<pid_t>(std::strtol(entries + at + kName, nullptr, 10));
            at += length;
            if (thread <= 0) continue;  // "." and ".."
            if (count < kMostThreads) threads[count] = thread;
            ++count;
        }
    }
    close(folder);
    return got < 0 ? -1 : count;
}

/// Returns whether the kernel is ending all threads of a process. False if a thread may execute, or if that is uncertain.
bool all_threads_exit(pid_t pid) {
    pid_t threads[kMostThreads];
    char text[512];
    const int count = list_threads(pid, threads);
    if (count > kMostThreads) return false;
    for (int i = 0; i < count; ++i) {
        const char* state = read_status(pid, text, threads[i]);
        if (!state || !is_exiting(state)) return false;
    }
    // A thread of the list may have started another one just before it ended. So the kernel must count as many threads as the list has,
    // while all of the list still exist.
    const char* state = count > 0 ? read_status(pid, text) : nullptr;
    if (!state || thread_count(state) != count) return false;
    for (int i = 0; i < count; ++i)
        if (syscall(SYS_tgkill, pid, threads[i], 0) != 0) return false;
    return true;
}

STARLING_STATE bool apart = false;
STARLING_STATE int32_t pid_here = 0;

}  // namespace

int32_t own_pid() {
    if (pid_here == 0) pid_here = getpid();
    return pid_here;
}

bool knows_pids() { return !apart; }

uint32_t find_pid_namespace() {
    struct stat status;
    return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint32_t>(status.st_ino) : 0;
}

void set_launchers_pid_namespace(uint32_t number) { apart = number != 0 && number != find_pid_namespace(); }

pid_t find_executing_thread(pid_t pid) {
    pid_t threads[kMostThreads];
    char text[512];
    const int count = list_threads(pid, threads);
    for (int i = 0; i < count && i < kMostThreads; ++i) {
        const char* state = read_status(pid, text, threads[i]);
        if (state && !is_exiting(state)) return threads[i];
    }
    return 0;
}

pid_t find_shown_id(pid_t pid) {
    char text[512];
    const char* state = read_status(pid, text);
    if (!state || !is_exiting(state)) return pid;
    const pid_t thread = find_executing_thread(pid);
    return thread != 0 ? thread : pid;
}

void find_descriptor_path(pid_t pid, int descriptor, DescriptorPath& path) {
    std::snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, descriptor);
    struct stat status;
    if (lstat(path, &status) == 0 || errno != ENOENT) return;
    const pid_t thread = find_executing_thread(pid);
    if (thread != 0 && thread != pid) std::snprintf(path, sizeof path, "/proc/%d/task/%d/fd/%d", pid, thread, descriptor);
}

bool process_ended(pid_t pid) {
    if (kill(pid, 0) != 0) return errno == ESRCH;
    // kill() succeeds for zombies too, and if their parent never waits for them, they stay zombies.
    char text[512];
    const char* state = read_status(pid, text);
    // /proc may be missing, or with hidepid=2 hide a process that is not dumpable, so only a second kill() tells whether the process has
    // ended since the first.
    if (!state) return kill(pid, 0) != 0 && errno == ESRCH;
    if (!is_exiting(state)) return false;
    // A process whose first thread has ended is shown as a zombie while its other threads run. They are counted after the first thread has
    // been seen to end, because it may start another one until then.
    state = read_status(pid, text);
    if (!state) return kill(pid, 0) != 0 && errno == ESRCH;
    if (!is_exiting(state)) return false;  // another thread has called execve() and is now the first
    return thread_count(state) <= 1 || all_threads_exit(pid);
}

bool neighbour_ended(pid_t pid) { return !apart && process_ended(pid); }

bool find_origin(pid_t pid, ProcessOrigin& out) {
    char text[512];
    const char* state = read_status(pid, text);
    const char* parent = state ? field_behind(state, kParent) : nullptr;
    const char* start = state ? field_behind(state, kStart) : nullptr;
    if (!parent || !start) return false;
    out = {static_cast<pid_t>(std::strtol(parent, nullptr, 10)), std::strtoull(start, nullptr, 10)};
    return true;
}

namespace {

// Returns whether data that this process wrote to `fd` may still be unread.
bool unread(int fd) {
    struct stat about;
    if (fstat(fd, &about) != 0) return false;
    int waiting = 0;
    if (S_ISFIFO(about.st_mode)) return ioctl(fd, FIONREAD, &waiting) == 0 && waiting > 0;
    if (S_ISSOCK(about.st_mode)) return ioctl(fd, SIOCOUTQ, &waiting) == 0 && waiting > 0;
    return false;
}

}  // namespace

void flush_output() {
    for (FILE* stream : {stdout, stderr}) {
        bool mine = ftrylockfile(stream) == 0;
        for (int i = 0; i < 20 && !mine; ++i) {  // long enough for a thread that is printing
            usleep(1000);
            mine = ftrylockfile(stream) == 0;
        }
        if (!mine) continue;
        fflush_unlocked(stream);
        funlockfile(stream);
    }
}

void drain_output() {
    for (int turns = 0; turns < 500 && (unread(STDOUT_FILENO) || unread(STDERR_FILENO)); ++turns) usleep(1000);
}

void request_short_slices(uint32_t microseconds) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } wish{};
    constexpr uint64_t kNotForChildren = 1;  // SCHED_FLAG_RESET_ON_FORK
    if (syscall(SYS_sched_getattr, 0, &wish, sizeof wish, 0) != 0) return;
    // SCHED_FLAG_RESET_ON_FORK would reset a niceness below 0 in children, so a thread with one requests nothing.
    if (wish.policy != SCHED_OTHER || wish.nice < 0) return;
    wish.size = sizeof wish;
    wish.flags = kNotForChildren;
    wish.runtime = uint64_t{microseconds} * 1000;
    syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace starling
