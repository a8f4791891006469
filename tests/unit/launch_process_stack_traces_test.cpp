// Stacks of hanging processes: which frames are shown, equal ones merged, and a share of time that ends.
#include "launch/process/stack_traces.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "base/process.h"
#include "launch/process/stack_source.h"
#include "launch/process/stack_walk.h"

namespace starling::launch {
namespace {

constexpr hang::ProcessName kFirst{7, 0}, kSecond{7, 1};

StackFrame frame(const char* function, const char* module, const char* source = "") { return {function, module, source, 0}; }

std::string shown(std::vector<ThreadStack> threads) {
    ProcessStacks stacks{std::move(threads), ""};
    hide_library_frames(stacks);
    return stacks_text(stacks, false);
}

TEST(StackText, FramesBelowTheMpiCallAreHidden) {
    EXPECT_EQ(shown({{1,
                      {frame("ppoll", "libc.so.6"), frame("starling::progress::wait", "libmpi_abi.so.1", "wait.cpp:3"),
                       frame("PMPI_Barrier", "libmpi_abi.so.1", "entries.cpp:9"), frame("MPI_Barrier", "libmpi.so.40"),
                       frame("exchange", "heat2d", "heat2d.c:118"), frame("main", "heat2d", "heat2d.c:160")}}}),
              "  MPI_Barrier (libmpi.so.40)\n  exchange (heat2d.c:118)\n  main (heat2d.c:160)\n");
}

TEST(StackText, ACallbackOfTheProgramIsShownWithTheCallAroundIt) {
    EXPECT_EQ(
        shown({{1,
                {frame("my_operation", "heat2d", "heat2d.c:5"), frame("reduce", "libmpi_abi.so.1"),
                 frame("PMPI_Reduce", "libmpi_abi.so.1"), frame("main", "heat2d", "heat2d.c:160")}}}),
        "  my_operation (heat2d.c:5)\n  reduce (libmpi_abi.so.1)\n  PMPI_Reduce (libmpi_abi.so.1)\n  main (heat2d.c:160)\n");
}

TEST(StackText, TheLibrarysFunctionBehindACallHasTheCallsName) {
    EXPECT_EQ(
        shown(
            {{1, {frame("starling::mpi::Send(void const*, long)", "libmpi_abi.so.1"), frame("main", "heat2d", "heat2d.c:1")}}}),
        "  MPI_Send (libmpi_abi.so.1)\n  main (heat2d.c:1)\n");
}

TEST(StackText, FramesOfASignalHandlerAreDropped) {
    ProcessStacks stacks{{{1, {frame("on_crash", "x"), frame("f", "x"), frame("main", "x")}}, {2, {frame("g", "x")}}}, ""};
    stacks.threads[0].frames[1].address = 0x400;
    keep_from(stacks, 1, 0x400);
    EXPECT_EQ(stacks_text(stacks, false), "  f (x)\n  main (x)\n");
}

TEST(StackText, ThreadsOfTheLibraryAreHiddenUnlessThereIsNoOther) {
    const ThreadStack progress{2, {frame("ppoll", "libc.so.6"), frame("run", "libmpi_abi.so.1"), frame("clone3", "libc.so.6")}};
    EXPECT_EQ(shown({{1, {frame("main", "heat2d", "heat2d.c:1")}}, progress}), "  main (heat2d.c:1)\n");
    EXPECT_EQ(shown({progress}), "  ppoll (libc.so.6)\n  run (libmpi_abi.so.1)\n  clone3 (libc.so.6)\n");
}

TEST(StackText, FramesOfAPythonInterpreterAreOneLine) {
    EXPECT_EQ(shown({{1, {frame("PMPI_Recv", "libmpi_abi.so.1"), frame("a", "python3.11"), frame("b", "python3.11")}}}),
              "  PMPI_Recv (libmpi_abi.so.1)\n  2 frames of python3.11 (--all-frames shows them)\n");
}

/// Waits until a child of this process sleeps.
void await_sleep(pid_t child) {
    std::string state;
    for (int looks = 0; looks < 200'000 && state != "S"; ++looks) {
        std::ifstream status("/proc/" + std::to_string(child) + "/status");
        for (std::string word; status >> word && word != "State:";) continue;
        status >> state;
        usleep(1000);
    }
    EXPECT_EQ(state, "S") << "child " << child;
}

/// Children that sleep until the test ends.
class StackTraces : public testing::Test {
  protected:
    void SetUp() override {
        for (pid_t& pid : children_) {
            pid = fork();
            if (pid == 0)
                for (;;) pause();
        }
        for (const pid_t pid : children_) await_sleep(pid);
    }
    void TearDown() override {
        for (pid_t pid : children_) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
    }
    std::vector<StackSubject> subjects() const { return {{kFirst, children_[0], " (x)"}, {kSecond, children_[1], " (x)"}}; }
    pid_t children_[2];
};

TEST_F(StackTraces, EqualStacksAreMerged) {
    const std::string text = take_stacks(subjects(), 7, {});
    EXPECT_EQ(text.find("---- rank 0 and rank 1 (x), processes " + std::to_string(children_[0]) + " and "), 0u) << text;
    EXPECT_NE(text.find("pause (libc.so.6)\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("----"), text.rfind("----")) << text;
}

TEST_F(StackTraces, TheTextSaysHowManyWereTakenInTheShare) {
    StackOptions options;
    options.share = std::chrono::seconds(0);
    EXPECT_EQ(take_stacks(subjects(), 7, options), "stacks of 0 of 2 processes (the 0 s for stacks are over)\n");
}

TEST_F(StackTraces, ASignalDoesNotRemoveTheLimit) {
    char script[] = "/tmp/starling-tests-XXXXXX";
    const int fd = mkstemp(script);
    ASSERT_GE(fd, 0);
    constexpr std::string_view kSlow = "#!/bin/sh\nsleep 100 >&-\n: > $0.end\n";
    ASSERT_EQ(write(fd, kSlow.data(), kSlow.size()), static_cast<ssize_t>(kSlow.size()));
    fchmod(fd, 0700);
    close(fd);
    struct sigaction action {
    }, before{};
    action.sa_handler = [](int) {};
    sigaction(SIGALRM, &action, &before);
    const itimerval soon{{0, 0}, {0, 100'000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    EXPECT_EQ(stacks_by_gdb(script, children_[0], StackClock::now() + std::chrono::milliseconds(500)),
              "  no stack: gdb failed\n");
    sigaction(SIGALRM, &before, nullptr);
    EXPECT_NE(unlink((std::string(script) + ".end").c_str()), 0);  // the script was killed
    unlink(script);
}

TEST(StackOfThread, AProcessWhoseFirstThreadHasEndedHasTheStacksOfTheOthers) {
    const pid_t child = fork();
    if (child == 0) {
        std::thread([] {
            for (;;) pause();
        }).detach();
        syscall(SYS_exit, 0);  // ends this thread only; pthread_exit would unwind the test
    }
    for (int looks = 0; looks < 100'000 && find_shown_id(child) == child; ++looks) usleep(1000);
    await_sleep(find_shown_id(child));
    const std::string text = take_stacks({{kFirst, child, ""}}, 7, {});
    EXPECT_NE(text.find("  state S (sleeping), "), std::string::npos) << text;
    EXPECT_NE(text.find("pause (libc.so.6)\n"), std::string::npos) << text;
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
}

TEST_F(StackTraces, AProcessThatHasEndedIsNoError) {
    const std::string text = take_stacks({{kFirst, 1 << 30, ""}}, 7, {});
    EXPECT_NE(text.find("  no stack: "), std::string::npos) << text;
}

}  // namespace
}  // namespace starling::launch
