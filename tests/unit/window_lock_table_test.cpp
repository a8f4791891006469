// The lock table of a window: mutual exclusion, precedence of a waiting exclusive lock over new shared ones, and cleanup after dead
// processes; finally threads that do all of it.
#include "window/lock_table.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <thread>
#include <vector>

namespace starling::window {
namespace {

constexpr uint32_t kProcesses = 4;

class LockTableTest : public testing::Test {
  protected:
    std::vector<uint64_t> memory = std::vector<uint64_t>(LockTable::bytes(kProcesses) / 8 + 16);
    void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63});
    LockTable board{aligned, kProcesses};
    static constexpr uint32_t here(uint32_t who) { return LockTable::holder_here(who); }
};

TEST_F(LockTableTest, SharedLocksCoexist) {
    EXPECT_TRUE(board.try_shared(0, 2));
    EXPECT_TRUE(board.try_shared(1, 2));
    EXPECT_TRUE(board.try_shared_for_another(2));
    EXPECT_FALSE(board.try_exclusive(here(3), 2));
    board.release_shared(0, 2);
    board.release_shared(1, 2);
    EXPECT_FALSE(board.try_exclusive(here(3), 2)) << "a process on another host still holds the lock";
    board.release_shared_for_another(2);
    EXPECT_TRUE(board.try_exclusive(here(3), 2));
    board.release_exclusive(2);
}

TEST_F(LockTableTest, AnExclusiveLockExcludesAll) {
    EXPECT_TRUE(board.try_exclusive(here(1), 0));
    EXPECT_TRUE(board.try_exclusive(here(1), 0)) << "the process already holds the lock";
    EXPECT_FALSE(board.try_exclusive(here(2), 0));
    EXPECT_FALSE(board.try_exclusive(LockTable::holder_afar(1), 0)) << "rank 1 of another host is not the process in place 0";
    EXPECT_FALSE(board.try_shared(3, 0));
    EXPECT_FALSE(board.try_shared_for_another(0));
    EXPECT_TRUE(board.try_exclusive(here(3), 1)) << "a lock of another target is independent";
    board.release_exclusive(0);
    EXPECT_TRUE(board.try_shared(3, 0));
}

TEST_F(LockTableTest, AHolderThatTriesAgainHolds) {
    EXPECT_TRUE(board.try_shared(0, 3));
    EXPECT_FALSE(board.try_exclusive(here(1), 3));
    EXPECT_TRUE(board.try_shared(0, 3)) << "the holder would wait for the process that waits for it";
    board.release_shared(0, 3);
    EXPECT_TRUE(board.try_exclusive(here(1), 3));
}

TEST_F(LockTableTest, WritersDoNotStarve) {
    EXPECT_TRUE(board.try_shared(0, 3));
    EXPECT_FALSE(board.try_exclusive(here(1), 3));
    EXPECT_FALSE(board.try_shared(2, 3)) << "this shared request came after the waiting exclusive one";
    EXPECT_FALSE(board.try_exclusive(here(2), 3));
    board.release_shared(0, 3);
    EXPECT_FALSE(board.try_exclusive(here(2), 3)) << "the lock is reserved for the process that waits";
    EXPECT_TRUE(board.try_exclusive(here(1), 3));
    board.release_exclusive(3);
    // When a wait for an exclusive lock is cancelled, other processes can lock.
    EXPECT_TRUE(board.try_shared(0, 3));
    EXPECT_FALSE(board.try_exclusive(here(1), 3));
    board.withdraw_exclusive(here(2), 3);
    EXPECT_FALSE(board.try_shared(2, 3)) << "the wait of another process still blocks new shared locks";
    board.withdraw_exclusive(here(1), 3);
    EXPECT_TRUE(board.try_shared(2, 3));
}

TEST_F(LockTableTest, ASharedLockMayOvertakeAWaitingWriter) {
    EXPECT_TRUE(board.try_shared(0, 3));
    EXPECT_FALSE(board.try_exclusive(here(1), 3));
    EXPECT_FALSE(board.try_shared_for_another(3));
    EXPECT_TRUE(board.try_shared_for_another(3, true));
    board.release_shared(0, 3);
    EXPECT_FALSE(board.try_exclusive(here(1), 3));
    board.release_shared_for_another(3);
    EXPECT_TRUE(board.try_exclusive(here(1), 3));
    EXPECT_FALSE(board.try_shared_for_another(3, true)) << "the lock is held already";
    board.release_exclusive(3);
}

TEST_F(LockTableTest, AllSharedLocksAreReleasedTogether) {
    for (uint32_t target = 0; target < kProcesses; ++target) EXPECT_TRUE(board.try_shared(1, target));
    board.begin_wait(0, 2);
    board.set_pending(3, true);
    std::vector<uint32_t> rung;
    board.release_all_shared(1, [&](uint32_t who) { rung.push_back(who); });
    EXPECT_EQ(rung, (std::vector<uint32_t>{0, 3}));
    for (uint32_t target = 0; target < kProcesses; ++target) EXPECT_TRUE(board.try_exclusive(here(0), target));
}

TEST_F(LockTableTest, LocksOfDeadProcessesAreReleased) {
    EXPECT_TRUE(board.try_exclusive(here(3), 0));
    EXPECT_TRUE(board.try_shared(3, 1));
    EXPECT_TRUE(board.try_shared(0, 2));
    EXPECT_FALSE(board.try_exclusive(here(3), 2));
    board.begin_wait(3, 2);
    const auto is_3 = [](uint32_t who) { return who == 3; };
    EXPECT_FALSE(board.bury_holders(3, is_3)) << "the dead process does not hold this lock";
    EXPECT_TRUE(board.bury_holders(0, is_3));
    EXPECT_TRUE(board.try_exclusive(here(1), 0));
    EXPECT_TRUE(board.try_exclusive(here(1), 1));
    EXPECT_TRUE(board.try_shared(1, 2)) << "the dead process's wait must no longer block other locks";
    board.each_waiter(2, [](uint32_t) { FAIL() << "a dead process waits"; });
    EXPECT_FALSE(board.bury_holders(0, [](uint32_t) { return false; })) << "living processes keep their locks";
}

TEST_F(LockTableTest, WaitersAreFound) {
    std::vector<uint32_t> found;
    const auto note = [&](uint32_t who) { found.push_back(who); };
    board.begin_wait(1, 0);
    board.begin_wait(2, 3);
    board.set_pending(0, true);
    board.each_waiter(0, note);
    EXPECT_EQ(found, (std::vector<uint32_t>{1, 0}));
    found.clear();
    board.end_wait(1);
    board.set_pending(0, false);
    board.each_waiter(0, note);
    EXPECT_TRUE(found.empty());
    board.begin_wait(1, LockTable::kEveryTarget);
    board.each_waiter(0, note);
    board.each_waiter(3, note);
    EXPECT_EQ(found, (std::vector<uint32_t>{1, 1, 2}));
}

/// Threads play processes. Data under an exclusive lock changes only by its holder, and data read under a shared lock does not change.
TEST_F(LockTableTest, ThreadsExcludeEachOther) {
    constexpr int kTimes = 3000;
    long first = 0, second = 0;  // plain numbers, not atomic: the locks must protect them
    std::vector<std::thread> threads;
    for (uint32_t who = 0; who < kProcesses; ++who)
        threads.emplace_back([&, who] {
            for (int i = 0; i < kTimes; ++i) {
                if (who == 0 && i % 5 == 4) {
                    while (!board.try_shared_for_another(0, true)) sched_yield();
                    EXPECT_EQ(first, second);
                    board.release_shared_for_another(0);
                }
                if ((i + static_cast<int>(who)) % 3 == 0) {
                    while (!board.try_exclusive(here(who), 0)) sched_yield();
                    ++first;
                    ++second;
                    board.release_exclusive(0);
                } else {
                    while (!board.try_shared(who, 0)) sched_yield();
                    EXPECT_EQ(first, second);
                    board.release_shared(who, 0);
                }
            }
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(first, kProcesses * kTimes / 3);
}

}  // namespace
}  // namespace starling::window
