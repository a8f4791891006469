// Doorbells: waking a process that sleeps on a futex, on its sockets, or on both.
#include "job/doorbell.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

namespace starling::job {
namespace {

/// A doorbell with a wake socket, as a process with peers on other hosts has one.
struct Sleeper {
    Doorbell doorbell{};
    int fd = open_wake_socket(doorbell);
    ~Sleeper() { close(fd); }

    bool readable(int milliseconds) const {
        pollfd wait{fd, POLLIN, 0};
        return poll(&wait, 1, milliseconds) == 1;
    }
};

TEST(Doorbell, RingingAnAwakeProcessDoesNothing) {
    Sleeper sleeper;
    ASSERT_GE(sleeper.fd, 0);
    ring(sleeper.doorbell);
    EXPECT_EQ(sleeper.doorbell.rings.load(), 0u);
    EXPECT_FALSE(sleeper.readable(0));
}

TEST(Doorbell, ASleeperOnSocketsIsWokenByADatagram) {
    Sleeper sleeper;
    sleeper.doorbell.sleeping.store(kOnSocket);
    ring(sleeper.doorbell);
    EXPECT_TRUE(sleeper.readable(1000));
    EXPECT_TRUE(drain_wake_socket(sleeper.fd));
    EXPECT_FALSE(drain_wake_socket(sleeper.fd));
    EXPECT_FALSE(sleeper.readable(0));
}

// A ring between the announcement of the sleep and the sleep must not be lost.
TEST(Doorbell, ARingBeforeTheSleepEndsTheSleepAtOnce) {
    Sleeper sleeper;
    sleeper.doorbell.sleeping.store(kOnSocket);
    const pid_t child = fork();
    if (child == 0) {
        // Another process can ring by the doorbell's socket name alone.
        ring(sleeper.doorbell);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(sleeper.readable(0));
}

TEST(Doorbell, AThousandRingsToAProcessThatDoesNotPollBlockNoSender) {
    Sleeper sleeper;
    sleeper.doorbell.sleeping.store(kOnSocket);
    for (int i = 0; i < 1000; ++i) ring(sleeper.doorbell);
    EXPECT_TRUE(drain_wake_socket(sleeper.fd));
}

TEST(Doorbell, ThreadsOnTheFutexAndOnTheSocketBothWake) {
    Sleeper sleeper;
    std::atomic<bool> woken{false};
    sleeper.doorbell.sleeping.store(kOnFutex | kOnSocket);
    std::thread thread([&] {
        while (sleeper.doorbell.rings.load() == 0)
            syscall(SYS_futex, &sleeper.doorbell.rings, FUTEX_WAIT, 0, nullptr, nullptr, 0);
        woken.store(true);
    });
    ring(sleeper.doorbell);
    thread.join();
    EXPECT_TRUE(woken.load());
    EXPECT_TRUE(sleeper.readable(1000));
}

/// Sleeps on the doorbell until rung: as a thread of the program, or, with a bitset, as one of the library. Records whether it was woken.
class ThreadOnBell {
  public:
    ThreadOnBell(Doorbell& doorbell, uint32_t bits)
        : thread_([this, &doorbell, bits] {
              tid_ = static_cast<int>(syscall(SYS_gettid));
              syscall(SYS_futex, &doorbell.rings, FUTEX_WAIT_BITSET, 0, nullptr, nullptr, bits);
          }) {
        while (!sleeps()) sched_yield();
    }
    ~ThreadOnBell() { thread_.join(); }

    bool sleeps() const {
        const int tid = tid_.load();
        if (tid == 0) return false;
        std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
        std::string number, name, state;
        file >> number >> name >> state;
        return state == "S";
    }

  private:
    std::atomic<int> tid_{0};
    std::thread thread_;
};

// The progress thread sleeps on the doorbell beside a waiting thread of the program. When the latter is woken, the progress thread has no
// work and must sleep on.
TEST(Doorbell, TheProgressThreadSleepsOnWhileAThreadOfTheProgramIsWoken) {
    Sleeper sleeper;
    Doorbell& bell = sleeper.doorbell;
    ThreadOnBell library(bell, kLibraryThreads);
    {
        ThreadOnBell program(bell, FUTEX_BITSET_MATCH_ANY);
        bell.sleeping.store(kOnFutex | kInWait);
        ring(bell);
    }
    // FUTEX_WAKE returns 1: the library's thread was still asleep.
    EXPECT_EQ(syscall(SYS_futex, &bell.rings, FUTEX_WAKE_BITSET, 2, nullptr, nullptr, kLibraryThreads), 1);
}

TEST(Doorbell, TheProgressThreadIsWokenIfNoThreadOfTheProgramWaits) {
    Sleeper sleeper;
    ThreadOnBell library(sleeper.doorbell, kLibraryThreads);
    sleeper.doorbell.sleeping.store(kOnFutex);
    ring(sleeper.doorbell);
}

TEST(Doorbell, EveryWakeSocketHasAUniqueName) {
    Sleeper a, b;
    b.doorbell.sleeping.store(kOnSocket);
    ring(b.doorbell);
    EXPECT_TRUE(b.readable(1000));
    EXPECT_FALSE(a.readable(0));
}

TEST(Doorbell, ADoorbellWithoutANameIsNotWrittenTo) {
    const auto doorbell = std::make_unique<Doorbell>();
    doorbell->sleeping.store(kOnSocket);
    ring(*doorbell);
    EXPECT_EQ(doorbell->rings.load(), 1u);
}

}  // namespace
}  // namespace starling::job
