// A process waits until its output is read before it does anything that may end the reader. Also tests of short time slices.
#include "base/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>

namespace starling {
namespace {

constexpr char kLine[] = "the reason\n";

// A child whose standard error is `ends[1]`: prints a line, waits for its reader, and exits with 0 if the line was read by then.
pid_t child_that_prints(const std::array<int, 2>& ends) {
    const pid_t child = fork();
    if (child != 0) return child;
    // Standard output becomes the pipe too, so that drain_output() does not wait for the readers of the test's own output.
    if (dup2(ends[1], STDERR_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0) _exit(3);
    if (write(STDERR_FILENO, kLine, sizeof kLine - 1) != static_cast<ssize_t>(sizeof kLine - 1)) _exit(3);
    drain_output();
    int waiting = -1;
    _exit(ioctl(ends[0], FIONREAD, &waiting) != 0 ? 3 : waiting == 0 ? 0 : 1);
}

// The kernel shows a process as a zombie when its first thread has ended, while other threads run.
TEST(Process, ProcessWhoseFirstThreadHasEndedLivesUntilAllThreadsEnd) {
    const pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 3; ++i) std::thread([] { pause(); }).detach();
        syscall(SYS_exit, 0);  // ends this thread only; pthread_exit would unwind the test
    }
    char path[32], text[512] = {};
    std::snprintf(path, sizeof path, "/proc/%d/stat", child);
    for (int i = 0; i < 100'000 && !std::strstr(text, ") Z "); ++i) {
        usleep(1000);
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        ASSERT_GT(read(fd, text, sizeof text - 1), 0);
        close(fd);
    }
    EXPECT_NE(std::strstr(text, ") Z "), nullptr);
    EXPECT_FALSE(process_ended(child));
    EXPECT_NE(find_shown_id(child), child);
    EXPECT_EQ(find_shown_id(child), find_executing_thread(child));
    EXPECT_EQ(find_shown_id(getpid()), getpid());
    kill(child, SIGKILL);
    for (int i = 0; i < 100'000 && !process_ended(child); ++i) usleep(1000);
    EXPECT_TRUE(process_ended(child));
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(process_ended(child));
}

// A process that requests short time slices keeps its niceness. Its children keep theirs too, and have ordinary slices.
TEST(Process, ShortTimeSlicesAreNotInheritedByChildren) {
    const pid_t child = fork();
    if (child == 0) {
        // Not nice(), which adds to the niceness of the test. The policy is the ordinary one, whatever the test was started with.
        const sched_param ordinary{};
        if (sched_setscheduler(0, SCHED_OTHER, &ordinary) != 0 || setpriority(PRIO_PROCESS, 0, 19) != 0) _exit(2);
        request_short_slices();
        if (getpriority(PRIO_PROCESS, 0) != 19) _exit(3);
        if (fork() == 0)
            _exit(getpriority(PRIO_PROCESS, 0) == 19 && (sched_getscheduler(0) & SCHED_RESET_ON_FORK) == 0 ? 0 : 4);
        int status = 0;
        wait(&status);
        _exit(WEXITSTATUS(status));
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

int code_of(pid_t child) {
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Hides /proc from this process. Returns false where that is forbidden.
bool hide_proc() {
    return (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
           mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 && mount("none", "/proc", "tmpfs", 0, nullptr) == 0;
}

// With hidepid=2 /proc hides processes of the same user that are not dumpable, and a container may have no /proc.
TEST(Process, ProcessThatProcHidesHasNotEnded) {
    constexpr int kForbidden = 77;
    const pid_t child = fork();
    if (child == 0) {
        const pid_t living = fork();
        if (living == 0) pause();
        const pid_t ended = fork();
        if (ended == 0) _exit(0);
        waitpid(ended, nullptr, 0);
        const bool hidden = hide_proc();
        const int code = !hidden ? kForbidden : process_ended(living) ? 1 : !process_ended(ended) ? 2 : 0;
        kill(living, SIGKILL);
        waitpid(living, nullptr, 0);
        _exit(code);
    }
    const int code = code_of(child);
    if (code == kForbidden) GTEST_SKIP() << "mounting is forbidden here";
    EXPECT_EQ(code, 0) << "1: a living process is taken for ended; 2: the reverse";
}

void expect_the_reader_is_waited_for(const std::array<int, 2>& ends) {
    const pid_t child = child_that_prints(ends);
    ASSERT_GT(child, 0);
    usleep(50'000);  // time for a child that fails to wait to check the pipe too early
    std::array<char, sizeof kLine> text{};
    EXPECT_EQ(read(ends[0], text.data(), text.size()), static_cast<ssize_t>(sizeof kLine - 1));
    EXPECT_EQ(std::string(text.data()), kLine);
    EXPECT_EQ(code_of(child), 0);
    for (const int end : ends) close(end);
}

TEST(Process, OutputWaitsForTheReaderOfAPipe) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    expect_the_reader_is_waited_for(ends);
}

TEST(Process, OutputWaitsForTheReaderOfASocket) {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    expect_the_reader_is_waited_for(ends);
}

TEST(Process, WaitingForAReaderThatDoesNotReadHasATimeout) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(code_of(child_that_prints(ends)), 1);
    for (const int end : ends) close(end);
}

}  // namespace
}  // namespace starling
