// The event loop where the kernel has no room for a further watch. epoll_ctl() is replaced here, since the real limit counts the watches of
// all processes of a user.
#include "launch/common/event_loop.h"

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

int refusals = 0, refusal = 0, added = 0, removed = 0;

}  // namespace

extern "C" int epoll_ctl(int epoll, int operation, int fd, epoll_event* event) noexcept {
    if (operation == EPOLL_CTL_ADD && refusals > 0) {
        --refusals;
        errno = refusal;
        return -1;
    }
    added += operation == EPOLL_CTL_ADD;
    removed += operation == EPOLL_CTL_DEL;
    return static_cast<int>(syscall(SYS_epoll_ctl, epoll, operation, fd, event));
}

namespace starling::launch {
namespace {

using std::chrono::milliseconds;

class ALoopWithoutRoom : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(pipe(ends_), 0);
        ASSERT_EQ(write(ends_[1], "x", 1), 1);
        added = removed = 0;
        loop_.after(milliseconds(20000), [this] { loop_.stop(1); });  // the end of a test that fails
    }
    void TearDown() override {
        loop_.forget(ends_[0]);
        for (const int end : ends_) close(end);
        refusals = 0;
    }
    bool watch(int error, int times, uint32_t events = EPOLLIN) {
        refusal = error;
        refusals = times;
        return loop_.watch(ends_[0], events, [this](uint32_t) { loop_.stop(0); });
    }

    EventLoop loop_;
    int ends_[2];
};

TEST_F(ALoopWithoutRoom, TriesAgain) {
    ASSERT_TRUE(watch(ENOSPC, 3));
    EXPECT_EQ(loop_.run(), 0);
    EXPECT_EQ(added, 1);
}

TEST_F(ALoopWithoutRoom, AddsTheEventsOfTheLastChange) {
    ASSERT_TRUE(watch(ENOMEM, 1, 0));
    loop_.change(ends_[0], EPOLLIN);
    EXPECT_EQ(loop_.run(), 0);
}

TEST_F(ALoopWithoutRoom, DoesNotAddWhatWasForgotten) {
    ASSERT_TRUE(watch(ENOSPC, 1));
    loop_.forget(ends_[0]);
    loop_.after(milliseconds(120), [this] { loop_.stop(2); });
    EXPECT_EQ(loop_.run(), 2);
    EXPECT_EQ(added + removed, 0);
}

TEST_F(ALoopWithoutRoom, RefusesADescriptorThatCannotBeWatched) {
    EXPECT_FALSE(watch(EPERM, 1));
    EXPECT_EQ(added, 0);
}

}  // namespace
}  // namespace starling::launch
