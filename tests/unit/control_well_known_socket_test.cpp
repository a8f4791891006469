// Processes of one user meet at a predictable socket name, whatever other users do with that name.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>

#include "control/local_socket.h"
#include "control/peer_namespaces.h"
#include "control/well_known_socket.h"

using namespace starling::control;

namespace {

namespace fs = std::filesystem;

constexpr uid_t kNobody = 65534;

class WellKnownSocketTest : public testing::Test {
  protected:
    WellKnownSocketTest() {
        char path[] = "/tmp/starling-tests-XXXXXX";
        directory_ = mkdtemp(path);
        setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
    }
    ~WellKnownSocketTest() override {
        fs::remove_all(directory_);
        leave();
    }

    /// Makes the private directory unusable, so that only the abstract name remains: /run/user has no directory either.
    void without_directory() { chmod(directory_.c_str(), 0755); }

    /// Starts another process that runs `act` and then stays.
    void start(const std::function<bool()>& act) {
        int ready[2];
        ASSERT_EQ(pipe(ready), 0);
        other_ = fork();
        if (other_ == 0) {
            const char told = act() ? 'y' : 'n';
            if (write(ready[1], &told, 1) != 1) _exit(1);
            pause();
            _exit(0);
        }
        char told = 'n';
        ASSERT_EQ(read(ready[0], &told, 1), 1);
        close(ready[0]);
        close(ready[1]);
        ASSERT_EQ(told, 'y');
    }
    void leave() {
        if (other_ <= 0) return;
        kill(other_, SIGKILL);
        waitpid(other_, nullptr, 0);
        other_ = -1;
    }

    /// Another user listens at the abstract name and fills its queue.
    void squat() {
        start([this] {
            if (setgid(kNobody) != 0 || setuid(kNobody) != 0) return false;
            const int fd = listen_local(meeting_.name);
            if (fd < 0 || listen(fd, 0) != 0) return false;
            while (connect_local(meeting_.name, 0) >= 0) {}
            return errno == EAGAIN;
        });
    }

    /// Returns the error of connect_at(), or 0 if it connected.
    int connected() const {
        const int fd = connect_at(meeting_);
        if (fd < 0) return errno;
        close(fd);
        return 0;
    }

    const WellKnownSocket meeting_{"starling-test-meeting-" + std::to_string(getpid())};
    std::string directory_;
    pid_t other_ = -1;
};

TEST_F(WellKnownSocketTest, TheServerIsFoundAndLeavesNoFiles) {
    EXPECT_EQ(connected(), ECONNREFUSED);
    {
        WellKnownListener doors, second;
        ASSERT_TRUE(doors.open(meeting_));
        EXPECT_GE(doors.file(), 0);
        EXPECT_GE(doors.abstract(), 0);
        EXPECT_EQ(connected(), 0);
        EXPECT_FALSE(second.open(meeting_));
        EXPECT_EQ(errno, EADDRINUSE);
        // The directory in /run/user is removed when the user logs out; the server is still reachable by its abstract name.
        fs::remove_all(directory_ + "/starling");
        EXPECT_EQ(connected(), 0);
    }
    EXPECT_EQ(connected(), ECONNREFUSED);
}

TEST_F(WellKnownSocketTest, TheSocketOfAKilledServerIsRemoved) {
    start([this] {
        return (new WellKnownListener)->open(meeting_) && (new WellKnownListener)->open({meeting_.name + "-other"});
    });
    EXPECT_EQ(connected(), 0);
    leave();
    EXPECT_EQ(connected(), ECONNREFUSED);
    {
        WellKnownListener doors;
        ASSERT_TRUE(doors.open(meeting_));
        EXPECT_EQ(connected(), 0);
    }
    EXPECT_TRUE(fs::is_empty(directory_ + "/starling"));
}

TEST_F(WellKnownSocketTest, AnotherUsersServerWithTheNameDoesNotInterfere) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
    squat();
    EXPECT_EQ(connected(), ECONNREFUSED);
    WellKnownListener doors;
    ASSERT_TRUE(doors.open(meeting_));
    EXPECT_EQ(connected(), 0);
}

TEST_F(WellKnownSocketTest, WithoutADirectoryAnotherUsersServerWithTheNameIsReported) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
    without_directory();
    squat();
    EXPECT_EQ(connected(), EPERM);
    WellKnownListener doors;
    EXPECT_FALSE(doors.open(meeting_));
    EXPECT_EQ(errno, EPERM);
    leave();
    EXPECT_TRUE(doors.open(meeting_));
    EXPECT_EQ(connected(), 0);
}

TEST_F(WellKnownSocketTest, OtherUsersDirectoriesAreNotUsed) {
    without_directory();
    WellKnownListener doors;
    ASSERT_TRUE(doors.open(meeting_));
    EXPECT_EQ(doors.file(), -1);
    EXPECT_FALSE(fs::exists(directory_ + "/starling"));
    if (geteuid() != 0) return;
    ASSERT_EQ(chmod(directory_.c_str(), 0700), 0);
    ASSERT_EQ(chown(directory_.c_str(), kNobody, kNobody), 0);
    WellKnownListener others;
    EXPECT_FALSE(others.open(meeting_));
    EXPECT_FALSE(fs::exists(directory_ + "/starling"));
}

// Containers that share the network share abstract socket names too. A process of another container must be recognized as a stranger.
TEST_F(WellKnownSocketTest, AProcessInAnotherContainerIsAStranger) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be in another namespace";
    without_directory();
    WellKnownListener doors;
    ASSERT_TRUE(doors.open(meeting_));
    const int mine = connect_at(meeting_);
    ASSERT_GE(mine, 0);
    const int accepted = accept(doors.abstract(), nullptr, nullptr);
    EXPECT_TRUE(is_own_peer(accepted, false));
    start([this] {
        int told[2];
        if (pipe(told) != 0 || unshare(CLONE_NEWPID) != 0) return false;
        if (fork() == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            const bool strange = connected() == EPERM && connect_local(meeting_.name, 0) >= 0;
            if (write(told[1], strange ? "y" : "n", 1) != 1) _exit(1);
            pause();
        }
        char answer = 'n';
        return read(told[0], &answer, 1) == 1 && answer == 'y';
    });
    for (int i = 0; i < 2; ++i) {
        const int fd = accept(doors.abstract(), nullptr, nullptr);
        EXPECT_FALSE(is_own_peer(fd, false));
        EXPECT_TRUE(is_own_peer(fd, true));
        close(fd);
    }
    close(mine);
    close(accepted);
}

/// Runs `act` in a child process of an ordinary user, and returns the exit code: 1 if `act` returned true.
int as_ordinary_user(const std::function<bool()>& act) {
    const pid_t child = fork();
    if (child == 0) {
        if (setresuid(kNobody, kNobody, kNobody) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0) _exit(2);
        _exit(act());
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// Starts a process that is not dumpable, below a process in new namespaces of these kinds (0: none), and returns whether an ordinary
/// user's process believes that it shares them: 1 or 0.
int seems_shared(int namespaces) {
    int from_child[2], from_starter[2];
    if (pipe(from_child) != 0 || pipe(from_starter) != 0) return -1;
    const pid_t starter = fork();
    if (starter == 0) {
        if (unshare(namespaces) != 0) _exit(1);
        const pid_t child = fork();
        if (child == 0) {
            if ((namespaces & CLONE_NEWUSER) == 0 && setresuid(kNobody, kNobody, kNobody) != 0) _exit(1);
            prctl(PR_SET_PDEATHSIG, SIGKILL);  // after setresuid(), which resets it
            if (prctl(PR_SET_DUMPABLE, 0) == 0 && write(from_child[1], "y", 1) == 1) pause();
            _exit(1);
        }
        char done;
        if (read(from_child[0], &done, 1) == 1 && write(from_starter[1], &child, sizeof child) == sizeof child) pause();
        _exit(1);
    }
    for (const int fd : {from_child[0], from_child[1], from_starter[1]}) close(fd);
    pid_t child = -1;
    const bool started = read(from_starter[0], &child, sizeof child) == sizeof child;
    const int seen = started ? as_ordinary_user([child] { return shares_namespaces(child); }) : -1;
    close(from_starter[0]);
    if (started) kill(child, SIGKILL);
    kill(starter, SIGKILL);
    waitpid(starter, nullptr, 0);
    return seen;
}

// A daemon whose program file may not be read, in a container: the user is told neither of another user nor of another container.
TEST_F(WellKnownSocketTest, AServerWhoseNamespacesAreHiddenIsReported) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user and for namespaces";
    without_directory();
    start([this] {
        if (setresuid(kNobody, kNobody, kNobody) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0 || unshare(CLONE_NEWUSER) != 0)
            return false;
        int listener = -1;  // a process of the test before this one may hold the name until it is killed
        for (int i = 0; i < 10000 && (listener = listen_local(meeting_.name)) < 0 && errno == EADDRINUSE; ++i) usleep(1000);
        return listener >= 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
    });
    EXPECT_EQ(as_ordinary_user([this] {
                  WellKnownListener doors;
                  return connected() == EACCES && !doors.open(meeting_) && errno == EACCES;
              }),
              1);
    EXPECT_NE(held_name_problem(EACCES, "name").find("give starlingd's program file read permission"), std::string::npos);
    EXPECT_EQ(held_name_problem(ECONNREFUSED, "name"), "");
}

TEST(PeerNamespaces, AProcessThatIsNotDumpableIsAPeerOnlyInTheSameNamespaces) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user and for namespaces";
    unsigned long first = 1, to = 1, count = 0;
    std::ifstream("/proc/self/uid_map") >> first >> to >> count;
    if (first != 0 || to != 0 || count != 4294967295) GTEST_SKIP() << "needs a user namespace that maps each user to itself";
    EXPECT_EQ(seems_shared(0), 1);
    EXPECT_EQ(seems_shared(CLONE_NEWPID), 0);
    EXPECT_EQ(seems_shared(CLONE_NEWUSER), 0);
}

TEST(DaemonSocketName, DiffersBetweenUniverses) {
    std::set<std::string> names;
    const std::string longest(60, 'x');
    const std::string words[] = {"", "a_b", "a.b", "a-b", "\xc3\xa4", longest, longest + "y", longest + "z"};
    for (const std::string& word : words) {
        setenv("STARLING_UNIVERSE", word.c_str(), 1);
        const std::string name = daemon_socket_name();
        EXPECT_LT(name.size(), 90u);
        EXPECT_TRUE(names.insert(name).second) << word;
    }
    unsetenv("STARLING_UNIVERSE");
}

}  // namespace
