// Waking a process that sleeps on a futex, on its sockets, or on both.
#include "job/doorbell.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>

namespace starling::job {
namespace {

/// With a wake socket, as a process with peers on other hosts has one.
struct Sleeper {
    Doorbell doorbell{};
    int fd = open_wake_socket(doorbell);
    ~Sleeper() { close(fd); }

    bool readable(int milliseconds) const {
        pollfd wait{fd, POLLIN, 0};
        return poll(&wait, 1, milliseconds) == 1;
    }
};

TEST(Doorbell, RingingOneThatIsAwakeCostsNothingAndChangesNothing) {
    Sleeper sleeper;
    ASSERT_GE(sleeper.fd, 0);
    ring(sleeper.doorbell);
    EXPECT_EQ(sleeper.doorbell.rings.load(), 0u);
    EXPECT_FALSE(sleeper.readable(0));
}

TEST(Doorbell, OneThatWaitsForSocketsIsWokenByADatagram) {
    Sleeper sleeper;
    sleeper.doorbell.sleeping.store(kOnSocket);
    ring(sleeper.doorbell);
    EXPECT_TRUE(sleeper.readable(1000));
    EXPECT_TRUE(drain_wake_socket(sleeper.fd));
    EXPECT_FALSE(drain_wake_socket(sleeper.fd));
    EXPECT_FALSE(sleeper.readable(0));
}

// A ring between the announcement and the sleep must not be lost.
TEST(Doorbell, ARingBeforeTheSleepEndsItAtOnce) {
    Sleeper sleeper;
    sleeper.doorbell.sleeping.store(kOnSocket);
    const pid_t child = fork();
    if (child == 0) {
        // A copy of the doorbell's name is all another process needs.
        ring(sleeper.doorbell);
        _exit(0);
    }
    waitpid(child, nullptr, 0);
    EXPECT_TRUE(sleeper.readable(0));
}

TEST(Doorbell, AThousandRingsToOneWhoDoesNotLookBlockNobody) {
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

TEST(Doorbell, EveryWakeSocketHasANameOfItsOwn) {
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
