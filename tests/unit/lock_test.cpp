// The library's lock between threads: exclusion, nesting, handing over, and that nobody is left asleep.
#include "progress/lock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace starling::progress {
namespace {

class LibraryLock : public ::testing::Test {
  protected:
    void SetUp() override { multi_threaded = true; }
    void TearDown() override { multi_threaded = false; }
};

TEST_F(LibraryLock, OneAtATime) {
    constexpr int kThreads = 4, kTurns = 20000;
    long long plain = 0;  // not atomic: the lock must do
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < kTurns; ++i) {
                Lock lock;
                Lock nested;
                ++plain;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(plain, static_cast<long long>(kThreads) * kTurns);
}

TEST_F(LibraryLock, GivenUpHoweverDeep) {
    std::atomic<bool> inside{false};
    Lock lock;
    Lock nested;
    std::thread other([&] {
        Lock its;
        inside = true;
    });
    usleep(2000);
    EXPECT_FALSE(inside);
    const int held = release_lock_fully();
    EXPECT_EQ(held, 2);
    other.join();
    EXPECT_TRUE(inside);
    reacquire_lock(held);
}

// Threads that poll in turns: whoever holds the lock hands it over, so none starves.
TEST_F(LibraryLock, IsHandedOver) {
    constexpr int kThreads = 3;
    std::atomic<bool> stop{false};
    std::atomic<int> turns[kThreads] = {};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            Lock lock;
            while (!stop) {
                ++turns[t];
                hand_over_lock();
            }
        });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    auto all_had_turns = [&] { return turns[0] > 20 && turns[1] > 20 && turns[2] > 20; };
    while (!all_had_turns() && std::chrono::steady_clock::now() < end) usleep(1000);
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(all_had_turns()) << turns[0] << " " << turns[1] << " " << turns[2];
}

// Long enough holds send the waiters to sleep; each of them must be woken.
TEST_F(LibraryLock, SleepersAreWoken) {
    constexpr int kThreads = 4, kTurns = 10;
    std::atomic<int> done{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < kTurns; ++i) {
                {
                    Lock lock;
                    usleep(3000);
                }
                sched_yield();
            }
            ++done;
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(done, kThreads);
}

TEST(Lock, MayOutliveTheChangeToThreads) {
    {
        Lock lock;
        multi_threaded = true;
    }
    { Lock lock; }
    std::thread([] { Lock lock; }).join();
    multi_threaded = false;
}

}  // namespace
}  // namespace starling::progress
