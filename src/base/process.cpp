#include "base/process.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>

namespace starling {

bool process_gone(pid_t pid) {
    if (kill(pid, 0) != 0) return errno == ESRCH;
    // kill() finds zombies too, and where no one waits for orphans they stay.
    char path[32], text[512];
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return errno == ENOENT;
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    if (got <= 0) return got < 0 && errno == ESRCH;
    text[got] = '\0';
    // The state follows the name, which ends at the last parenthesis; 17 fields further the threads are
    // counted.
    const char* field = std::strrchr(text, ')');
    if (!field || field[1] != ' ' || (field[2] != 'Z' && field[2] != 'X')) return false;
    field += 2;
    for (int i = 0; field && i < 17; ++i)
        if ((field = std::strchr(field, ' '))) ++field;
    // A process whose first thread has ended is shown as a zombie while the others go on.
    return !field || field[0] == '\0' || (field[0] <= '1' && field[1] == ' ');
}

namespace {

// Whether what this process wrote to `fd` may still be waiting for its reader.
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
        for (int i = 0; i < 20 && !mine; ++i) {  // who prints is done by then
            usleep(1000);
            mine = ftrylockfile(stream) == 0;
        }
        if (!mine) continue;
        fflush_unlocked(stream);
        funlockfile(stream);
    }
}

void let_output_be_read() {
    for (int turns = 0; turns < 500 && (unread(STDOUT_FILENO) || unread(STDERR_FILENO)); ++turns) usleep(1000);
}

void ask_for_short_slices() {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } wish{};
    constexpr uint64_t kSliceNs = 100'000, kNotForChildren = 1;  // SCHED_FLAG_RESET_ON_FORK
    if (syscall(SYS_sched_getattr, 0, &wish, sizeof wish, 0) != 0) return;
    // That flag would take from children what the user has given them by a niceness below 0.
    if (wish.policy != SCHED_OTHER || wish.nice < 0) return;
    wish.size = sizeof wish;
    wish.flags = kNotForChildren;
    wish.runtime = kSliceNs;
    syscall(SYS_sched_setattr, 0, &wish, 0);
}

}  // namespace starling
