// The library's lock between threads: mutual exclusion, stepping out, handover, and waking of sleepers. A thread that holds no lock must
// step out before others enter.
#include "base/lock.h"

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
    void SetUp() override { threads_are = Threads::at_once; }
    void TearDown() override { threads_are = Threads::one; }
};

TEST_F(LibraryLock, OneThreadHoldsTheLockAtATime) {
    constexpr int kThreads = 4, kTurns = 20000;
    long long plain = 0;  // not atomic: only the lock protects it
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < kTurns; ++i) {
                Lock lock;
                ++plain;
            }
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(plain, static_cast<long long>(kThreads) * kTurns);
}

TEST_F(LibraryLock, TheLockIsReleasedWhileTheProgramsFunctionsRun) {
    std::atomic<bool> inside{false};
    Lock lock;
    std::thread other([&] {
        EXPECT_FALSE(is_inside());
        { const OutsideLibrary nothing_to_do; }
        Lock its;
        EXPECT_TRUE(is_inside());
        inside = true;
    });
    usleep(2000);
    EXPECT_FALSE(inside);
    {
        const OutsideLibrary outside;
        EXPECT_FALSE(is_inside());
        other.join();
    }
    EXPECT_TRUE(inside);
    EXPECT_TRUE(is_inside());
}

// Several threads poll in turns. The holder of the lock hands it over, so that no thread starves.
TEST_F(LibraryLock, HandoverKeepsPollingThreadsFromStarving) {
    constexpr int kThreads = 3;
    std::atomic<bool> stop{false};
    std::atomic<int> turns[kThreads] = {};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
        threads.emplace_back([&, t] {
            Lock lock;
            while (!stop) {
                ++turns[t];
                yield_lock();
            }
        });
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
    auto all_had_turns = [&] { return turns[0] > 20 && turns[1] > 20 && turns[2] > 20; };
    while (!all_had_turns() && std::chrono::steady_clock::now() < end) usleep(1000);
    stop = true;
    for (auto& thread : threads) thread.join();
    EXPECT_TRUE(all_had_turns()) << turns[0] << " " << turns[1] << " " << turns[2];
}

// One thread reacquires the lock at once and holds it nearly all the time. A second thread enters now and then, and must be woken.
TEST_F(LibraryLock, ImmediateReacquisitionStarvesNoThread) {
    constexpr int kTurns = 100;
    constexpr long kMost = 5'000'000;  // turns of the first thread; about ten per turn of the second on an idle machine
    std::atomic<int> turns{0};
    std::thread other([&] {
        while (turns < kTurns) {
            usleep(50);
            Lock lock;
            ++turns;
        }
    });
    long others = 0;
    while (turns < kTurns && others < kMost) {
        Lock lock;
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < end) {}
        ++others;
    }
    EXPECT_EQ(turns, kTurns) << "turns of the second thread during " << others << " turns of the first";
    RecordProperty("turns", static_cast<int>(others));
    other.join();
}

// The lock is held long enough for the waiters to sleep; each must be woken.
TEST_F(LibraryLock, SleepingWaitersAreWoken) {
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

class LockEnabledLater : public ::testing::TestWithParam<Threads> {
  protected:
    void SetUp() override {
        threads_are = Threads::one;
        allow_threads(GetParam());
    }
    void TearDown() override { threads_are = Threads::one; }
};

TEST_P(LockEnabledLater, MultithreadingMayBeEnabledWithinACall) {
    std::thread([] {
        Lock lock;
        threads_are = GetParam();
    }).join();
    allow_threads(Threads::at_once);
    { Lock lock; }
    std::thread([] { Lock lock; }).join();
}

// One thread runs without the lock and steps out only now and then, as a blocking wait does. A second thread calls allow_threads().
TEST_P(LockEnabledLater, EnablingWaitsForTheThreadInside) {
    std::atomic<bool> began{false}, stop{false};
    std::atomic<int> idled{0};
    long long plain = 0;
    std::thread first([&] {
        while (!stop) {
            Lock lock;
            began = true;
            for (int i = 0; i < 100 && !stop; ++i) {
                ++plain;
                if (i % 10 == 0) {
                    step_out();
                    step_in();
                }
                yield_lock();
                ++plain;
                ++idled;
            }
        }
    });
    while (!began) sched_yield();
    allow_threads(Threads::at_once);
    // Under Threads::one entering the lock leaves no trace, so the thread inside notices the change only when it steps out while idle.
    for (const int before = idled; GetParam() == Threads::one && idled < before + 12;) sched_yield();
    for (int i = 0; i < 1000; ++i) {
        Lock lock;
        const long long before = plain;
        for (int k = 0; k < 100; ++k) ASSERT_EQ(plain, before);
        ++plain;
    }
    stop = true;
    first.join();
}

INSTANTIATE_TEST_SUITE_P(After, LockEnabledLater, ::testing::Values(Threads::one, Threads::in_turn));

// allow_threads() waits until a thread that does not step out releases the lock.
TEST(Lock, EnablingWaitsForABusyThread) {
    allow_threads(Threads::in_turn);
    std::atomic<int> stage{0};
    std::thread busy([&] {
        Lock lock;
        stage = 1;
        usleep(50000);
        stage = 2;
    });
    while (stage == 0) sched_yield();
    allow_threads(Threads::at_once);
    EXPECT_EQ(stage, 2);
    busy.join();
    threads_are = Threads::one;
}

}  // namespace
}  // namespace starling::progress
