// The processes of one host meet at one helper, although its socket names are predictable and another user may occupy some.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <string>

#include "base/error.h"
#include "bootstrap/host_join.h"
#include "control/start_server.h"

using namespace starling;
using namespace starling::job;
using namespace starling::bootstrap;

namespace {

constexpr uid_t kNobody = 65534;

/// Another user who occupies the first of these socket names in one of three ways: bound only, listening, or listening with a full queue.
class Squatter {
  public:
    Squatter(JobId job, int names) {
        int ready[2];
        if (pipe(ready) != 0) return;
        pid_ = fork();
        if (pid_ == 0) {
            const control::WellKnownSocket helper = host_meeting(job);
            control::WellKnownSocket start = helper;
            start.name += "-start";
            if (setuid(kNobody) != 0) _exit(1);
            for (int i = 0; i < names; ++i) {
                hold(helper.abstract(i), i % 3);
                hold(start.abstract(i), (i + 1) % 3);
            }
            if (write(ready[1], "x", 1) != 1) _exit(1);
            pause();
            _exit(0);
        }
        char x;
        holds_ = read(ready[0], &x, 1) == 1;
        close(ready[0]);
        close(ready[1]);
    }
    Squatter(const Squatter&) = delete;
    Squatter& operator=(const Squatter&) = delete;
    ~Squatter() { leave(); }
    void leave() {
        if (pid_ <= 0) return;
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
        pid_ = -1;
    }
    bool holds() const { return holds_; }

  private:
    static void hold(const std::string& name, int how) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
        if (bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0) _exit(1);
        if (how < 2 && listen(fd, how == 0 ? 0 : 16) != 0) _exit(1);
        if (how > 0) return;
        int one;
        do {
            one = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
        } while (connect(one, reinterpret_cast<sockaddr*>(&address), length) == 0);
    }

    pid_t pid_ = -1;
    bool holds_ = false;
};

ManagedJob job_of_two(uint32_t rank) {
    ManagedJob job;
    job.name = "host-join-test-" + std::to_string(getpid());
    job.rank = rank;
    job.size = 2;
    job.hosts = {""};
    job.placements = {{0, 1, 2, 0, 0}};
    return job;
}

TEST(HostJoin, TheJobStartsThoughAnotherUserOccupiesTheSocketNames) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
    const JobId id = id_of(job_of_two(0), "test");
    Squatter squatter(id, 3);
    ASSERT_TRUE(squatter.holds());
    JobSegment first, second;
    bool taken = true;
    ASSERT_EQ(join_host(job_of_two(0), id, first, taken), 0) << failure_text();
    EXPECT_FALSE(taken);
    // After the names were freed, a process that joins finds the same helper.
    squatter.leave();
    ASSERT_EQ(join_host(job_of_two(1), id, second, taken), 0) << failure_text();
    EXPECT_EQ(first.header().owner_pid, second.header().owner_pid);
    EXPECT_EQ(first.header().secret[0], second.header().secret[0]);
    // join_host() sets `taken` for a process whose rank has already joined, whatever else prevents the join.
    EXPECT_FALSE(taken);
    JobSegment third;
    EXPECT_NE(join_host(job_of_two(0), id, third, taken), 0);
    EXPECT_TRUE(taken);
    // Also when another user occupies the first name again, a process finds the helper.
    Squatter again(id, 1);
    ASSERT_TRUE(again.holds());
    const int helper = connect_helper(id);
    EXPECT_GE(helper, 0);
    if (helper >= 0) close(helper);
}

/// A process of a job of two: starts the helper, and is killed before it joins. (A manager does this if another process failed.)
void start_helper_and_die(JobId id, int output) {
    dup2(output, STDOUT_FILENO);
    JobDescription description;
    description.draw();
    description.id = id;
    description.size = description.universe_size = 2;
    description.hosts.resize(1);
    description.placements = {{0, 1, 2, 0, 0}};
    const std::string bytes = encode(description);
    const int file = memfd_create("description", MFD_CLOEXEC);
    if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) _exit(1);
    const std::string path = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file);
    const char* const arguments[] = {"host", "0", path.c_str(), nullptr};
    std::string problem;
    const bool started = control::start_detached(control::find_starlingd(), arguments, true, problem);
    if (!started) std::fprintf(stderr, "%s\n", problem.c_str());
    kill(getpid(), started ? SIGKILL : SIGTERM);
}

// Managers wait until no process holds the write ends of their processes' output.
TEST(HostJoin, TheHelperEndsIfItsStarterDiesBeforeJoining) {
    const JobId id = id_of(job_of_two(0), "test of a starter");
    int output[2];
    ASSERT_EQ(pipe(output), 0);
    const pid_t starter = fork();
    if (starter == 0) start_helper_and_die(id, output[1]);
    close(output[1]);
    int status = 0;
    ASSERT_EQ(waitpid(starter, &status, 0), starter);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    // The helper would otherwise wait a minute for missing ranks.
    pollfd end{output[0], POLLIN, 0};
    EXPECT_EQ(poll(&end, 1, 40'000), 1) << "the helper holds the starter's output";
    EXPECT_EQ(end.revents & (POLLIN | POLLHUP), POLLHUP);
    close(output[0]);
    // The first helper has ended, so the next process that joins starts another.
    JobSegment segment;
    bool taken;
    EXPECT_EQ(join_host(job_of_two(1), id, segment, taken), 0) << failure_text();
}

}  // namespace
