// Daemons as real processes, started through agents that are shell scripts. This program is also their `starlingd node`.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "base/config.h"
#include "base/process.h"
#include "base/version.h"
#include "launch/common/event_loop.h"
#include "launch/tree/munge.h"
#include "launch/tree/node.h"
#include "launch/tree/tree.h"

namespace starling::launch {
namespace {

std::string content_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// The daemon on a node: echoes every message, and reports its command and environment.
struct Echo {
    Echo(EventLoop& loop, Tree& tree) {
        const std::string command = content_of("/proc/self/cmdline"), environment = content_of("/proc/self/environ");
        tree.set_facts(std::to_string(getpid()) + "\n" + command + "\n" + environment);
        TreeHandlers handlers;
        handlers.on_message = [&tree](const TreeMessage& m) { tree.send(m.from, std::string(m.payload)); };
        handlers.on_shut_down = [&] { tree.leave(std::chrono::seconds(5), [&loop] { loop.stop(0); }); };
        handlers.on_orphaned = [&loop](const std::string&) { loop.stop(1); };
        tree.set_handlers(std::move(handlers));
    }
};

class Agents : public ::testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/starling-tests-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        directory = name;
        char self[PATH_MAX] = {};
        ASSERT_GT(readlink("/proc/self/exe", self, sizeof self - 1), 0);
        settings.key = make_key();
        settings.program = self;
        settings.interfaces = "127.0.0.1";
        settings.version = version_text();
        settings.fanout = 2;
        settings.heartbeat = std::chrono::milliseconds(200);
        settings.grace = std::chrono::milliseconds(1000);
        agent("shift\nexec sh -c \"$*\"\n");
    }

    void TearDown() override {
        for (const char* file : {"/agent", "/program"}) unlink((directory + file).c_str());
        rmdir(directory.c_str());
    }

    std::string script(const char* name, const std::string& text) {
        const std::string path = directory + "/" + name;
        std::ofstream(path) << "#!/bin/sh\n" << text;
        chmod(path.c_str(), 0755);
        return path;
    }
    void agent(const std::string& text) { settings.agent = {script("agent", text)}; }

    // Starts the hosts; calls `then` when each is ready or has failed.
    void start(Tree& tree, EventLoop& loop, const std::vector<std::string>& hosts, std::function<void()> then) {
        TreeHandlers handlers;
        const auto settled = [this, &loop, n = hosts.size(), then] {
            if (ready.size() + failed.size() == n) loop.after(std::chrono::milliseconds(0), then);
        };
        handlers.on_ready = [this, settled](TreeHostId host, std::string_view facts) {
            ready[host] = facts;
            settled();
        };
        handlers.on_failed = [this, settled](TreeHostId host, const std::string& why) {
            failed[host] = why;
            settled();
        };
        handlers.on_message = [this](const TreeMessage& m) {
            if (on_message) on_message(m);
        };
        tree.set_handlers(std::move(handlers));
        tree.grow(hosts);
        loop.after(std::chrono::seconds(50), [&loop] {
            ADD_FAILURE() << "stuck";
            loop.stop(1);
        });
    }

    // Starts one host and returns the reason of its failure.
    std::string failure_of(const std::string& host = "lab3") {
        EventLoop loop;
        Tree tree(loop, settings);
        start(tree, loop, {host}, [&] { loop.stop(0); });
        loop.run();
        EXPECT_TRUE(ready.empty());
        return failed.empty() ? "" : failed.begin()->second;
    }

    bool contains(const std::string& text, const std::string& part) {
        if (text.find(part) != std::string::npos) return true;
        ADD_FAILURE() << "no '" << part << "' in: " << text;
        return false;
    }

    static bool gone(pid_t pid) {
        for (int i = 0; i < 20'000; ++i) {
            if (process_ended(pid)) return true;
            usleep(10000);
        }
        return false;
    }

    std::string directory;
    TreeSettings settings;
    std::map<TreeHostId, std::string> ready, failed;
    std::function<void(const TreeMessage&)> on_message;
};

TEST_F(Agents, StartAnswerAndEnd) {
    EventLoop loop;
    Tree tree(loop, settings);
    std::set<TreeHostId> answered;
    const std::string text = "hello " + std::string(100000, 'x');
    on_message = [&](const TreeMessage& m) {
        EXPECT_EQ(m.payload, text);
        answered.insert(m.from);
        if (answered.size() < 9) return;
        tree.shut_down(std::chrono::seconds(20), [&](const std::vector<TreeHostId>& left) {
            EXPECT_TRUE(left.empty());
            loop.stop(0);
        });
    };
    start(tree, loop, {"a", "b", "c", "d", "e", "f", "g", "h", "i"}, [&] { tree.broadcast(text); });
    EXPECT_EQ(loop.run(), 0);
    EXPECT_TRUE(failed.empty());
    const std::string key(settings.key.view());
    for (const auto& [host, facts] : ready) {
        EXPECT_TRUE(gone(std::atoi(facts.c_str()))) << host;
        const size_t line = facts.find('\n') + 1;
        EXPECT_EQ(facts.substr(line, facts.find('\n', line) - line), settings.program + std::string("\0node\0", 6));
        EXPECT_EQ(facts.find(key.substr(0, 8)), std::string::npos) << "other users can see the key";
    }
}

TEST_F(Agents, NodesEndWithAKilledRoot) {
    int report[2];
    ASSERT_EQ(pipe(report), 0);
    const pid_t root = fork();
    if (root == 0) {
        EventLoop loop;
        Tree tree(loop, settings);
        start(tree, loop, {"a", "b", "c", "d", "e", "f", "g"}, [&] {
            for (const auto& [host, facts] : ready) {
                const int pid = std::atoi(facts.c_str());
                if (write(report[1], &pid, sizeof pid) < 0) _exit(1);
            }
            ::kill(getpid(), SIGKILL);
        });
        loop.run();
        _exit(1);
    }
    close(report[1]);
    std::vector<int> pids;
    for (int pid; read(report[0], &pid, sizeof pid) == sizeof pid;) pids.push_back(pid);
    close(report[0]);
    waitpid(root, nullptr, 0);
    EXPECT_EQ(pids.size(), 7u);
    for (const int pid : pids) EXPECT_TRUE(gone(pid)) << pid;
}

TEST_F(Agents, KeptAgentsEndWithTheirNodes) {
    settings.keep_agent = true;
    EventLoop loop;
    Tree tree(loop, settings);
    start(tree, loop, {"a", "b"}, [&] { tree.shut_down(std::chrono::seconds(20), [&](const auto&) { loop.stop(0); }); });
    EXPECT_EQ(loop.run(), 0);
    EXPECT_EQ(ready.size(), 2u);
}

TEST_F(Agents, OutputOfALoginIsSkipped) {
    agent("echo Welcome to this machine; echo starling-node is great; shift\nexec sh -c \"$*\"\n");
    EventLoop loop;
    Tree tree(loop, settings);
    start(tree, loop, {"a"}, [&] { loop.stop(0); });
    loop.run();
    EXPECT_EQ(ready.size(), 1u);
}

TEST_F(Agents, TheErrorQuotesTheAgent) {
    agent("echo 'Permission denied (publickey).' >&2; exit 255\n");
    EXPECT_EQ(failure_of(), "host lab3: Permission denied (publickey)");
}

TEST_F(Agents, AMissingProgramIsReported) {
    settings.program = "/nowhere/bin/starlingd";
    const std::string why = failure_of();
    contains(why, "host lab3: starlingd was not found at /nowhere/bin/starlingd");
    contains(why, "--prefix");
}

TEST_F(Agents, AProgramThatCannotRunIsReported) {
    settings.program = script("program", "");
    chmod(settings.program.c_str(), 0644);
    contains(failure_of(), "can't be executed");
}

TEST_F(Agents, AVersionMismatchNamesBothVersions) {
    settings.program = script("program", "echo starling-node 1 '9.8.7 (wire 99.0)'; exec cat >/dev/null\n");
    const std::string why = failure_of();
    contains(why, "host lab3: ");
    contains(why, "9.8.7");
    contains(why, STARLING_VERSION);
}

TEST_F(Agents, OrdersOfAnotherVersionAreRefused) {
    settings.version = "9.8.7 (wire 99.0)";
    const std::string why = failure_of();
    contains(why, "9.8.7");
    contains(why, STARLING_VERSION);
}

TEST_F(Agents, AMissingAgentIsReported) {
    settings.agent = {"no-such-agent"};
    contains(failure_of(), "--launcher-agent");
}

TEST_F(Agents, AStartTimeoutReportsItsLength) {
    settings.start_limit = std::chrono::milliseconds(700);
    agent("exec sleep 1000\n");
    contains(failure_of(), "no daemon after 1 s");
}

TEST_F(Agents, AKilledAgentIsReported) {
    agent("kill -9 $$\n");
    contains(failure_of(), "killed by signal 9");
}

TEST_F(Agents, ADeadDaemonIsReported) {
    settings.program = script("program", "echo starling-node 1 '" + version_text() + "'\n");
    contains(failure_of(), "its daemon ended before it was connected");
}

TEST_F(Agents, AnUnreachablePortIsReported) {
    // The agent starts the node's daemon in a network namespace of its own, where the root's port is unreachable. The daemon must report
    // that.
    settings.start_limit = std::chrono::milliseconds(20000);
    agent("shift\nexec unshare -n sh -c \"$*\"\n");
    if (system("unshare -n true 2>/dev/null") != 0) GTEST_SKIP() << "needs the right to make network namespaces";
    const std::string why = failure_of();
    contains(why, "cannot connect to ");
    contains(why, " at 127.0.0.1 port ");
    contains(why, "unreachable");
}

TEST_F(Agents, EndlessOutputOfAnAgentIsNotStored) {
    settings.start_limit = std::chrono::milliseconds(1500);
    agent("yes noise & yes noise >&2\n");
    contains(failure_of(), "no daemon after");
}

// A munged process that the test starts, if munge is installed.
class Munged {
  public:
    explicit Munged(const std::string& directory) : directory_(directory) {
        std::ofstream(directory + "/key") << std::string(64, 'k');
        chmod((directory + "/key").c_str(), 0600);
        pid_ = fork();
        if (pid_ == 0) {
            close(2);
            const auto option = [&](const char* name) { return "--" + std::string(name) + "=" + directory_ + "/"; };
            execlp("munged", "munged", "--foreground", "--force", (option("key-file") + "key").c_str(),
                   (option("socket") + "socket").c_str(), (option("pid-file") + "pid").c_str(),
                   (option("seed-file") + "seed").c_str(), (option("log-file") + "log").c_str(), nullptr);
            _exit(127);
        }
        static std::string socket;  // static, because the variables that point to the text outlive this object
        socket = directory_ + "/socket";
        set_variable("STARLING_MUNGE_SOCKET", socket.c_str());
        setenv("STARLING_MUNGE_SOCKET", socket.c_str(), 1);
        std::string credential, why;
        for (int i = 0; i < 10'000 && !runs_; ++i) {
            runs_ = munge_seal("x", credential, why);
            if (!runs_) usleep(10000);
        }
    }
    ~Munged() {
        ::kill(pid_, SIGTERM);
        waitpid(pid_, nullptr, 0);
        for (const char* file : {"/key", "/socket", "/socket.lock", "/pid", "/seed", "/log"})
            unlink((directory_ + file).c_str());
        unsetenv("STARLING_MUNGE_SOCKET");
    }
    bool runs() const { return runs_; }

  private:
    std::string directory_;
    pid_t pid_ = -1;
    bool runs_ = false;
};

TEST_F(Agents, MungeVouchesForBothEnds) {
    Munged munged(directory);
    ASSERT_TRUE(munged.runs()) << "munged can't be run here: tools/install-packages test";
    settings.munge = true;
    EventLoop loop;
    Tree tree(loop, settings);
    start(tree, loop, {"a", "b", "c", "d", "e"},
          [&] { tree.shut_down(std::chrono::seconds(20), [&](const auto&) { loop.stop(0); }); });
    loop.run();
    EXPECT_TRUE(failed.empty()) << failed.begin()->second;
    EXPECT_EQ(ready.size(), 5u);
}

TEST_F(Agents, TheKeyAloneIsNotEnoughWithMunge) {
    Munged munged(directory);
    ASSERT_TRUE(munged.runs()) << "munged can't be run here: tools/install-packages test";
    settings.munge = true;
    settings.start_limit = std::chrono::milliseconds(8000);
    agent("shift\nSTARLING_MUNGE_SOCKET=/nowhere exec sh -c \"$*\"\n");
    const std::string why = failure_of();
    contains(why, "MUNGE");
    contains(why, "is munged running here");
}

TEST_F(Agents, AStoppedMungeIsReported) {
    set_variable("STARLING_MUNGE_SOCKET", "/nowhere/socket");
    settings.munge = true;
    contains(failure_of(), "MUNGE");
}

}  // namespace
}  // namespace starling::launch

int main(int argc, char** argv) {
    using namespace starling::launch;
    if (argc == 2 && std::string_view(argv[1]) == "node") {
        return run_node([](EventLoop& loop, Tree& tree) { return std::make_shared<Echo>(loop, tree); });
    }
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
