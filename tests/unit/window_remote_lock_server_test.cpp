// The remote lock server: the order of requests, and false packets: duplicated, reordered, or from a process that holds no lock.
#include "window/remote_lock_server.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "base/counter_start.h"

namespace starling::window {
namespace {

constexpr uint32_t kProcesses = 2, kMe = 0, kNeighbour = 1;

class RemoteLockServerTest : public testing::Test {
  protected:
    void SetUp() override { desk.open(board, kMe); }

    std::vector<uint64_t> memory = std::vector<uint64_t>(LockTable::bytes(kProcesses) / 8 + 16);
    void* aligned = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) & ~uintptr_t{63});
    LockTable board{aligned, kProcesses};
    RemoteLockServer desk;

    /// Returns the rank that gets the lock next; -1: none.
    int next() {
        RemoteLockServer::Claimant served{};
        return desk.serve(served) ? served.rank : -1;
    }
    bool exclusive(int rank, uint32_t number) { return desk.add_request({rank, number, true}); }
    bool shared(int rank, uint32_t number) { return desk.add_request({rank, number, false}); }
    bool drop(const std::set<int>& dead) {
        bool released = false;
        return desk.drop([&](int rank) { return dead.count(rank) != 0; }, released);
    }
};

TEST_F(RemoteLockServerTest, ServesInTheOrderOfRequests) {
    EXPECT_TRUE(exclusive(5, 1));
    EXPECT_TRUE(shared(6, 1));
    EXPECT_TRUE(shared(7, 1));
    EXPECT_EQ(next(), 5);
    EXPECT_EQ(next(), -1);
    EXPECT_TRUE(desk.release(5, 1));
    EXPECT_EQ(next(), 6);
    EXPECT_EQ(next(), 7);
    EXPECT_FALSE(desk.has_pending());
    EXPECT_FALSE(desk.idle());
    EXPECT_TRUE(desk.release(7, 1));
    EXPECT_TRUE(desk.release(6, 1));
    EXPECT_TRUE(desk.idle());
}

TEST_F(RemoteLockServerTest, ADuplicateRequestCountsOnce) {
    EXPECT_TRUE(exclusive(5, 1));
    EXPECT_FALSE(exclusive(5, 1)) << "the duplicate is ignored, because 5 waits already";
    EXPECT_EQ(next(), 5);
    EXPECT_FALSE(exclusive(5, 1)) << "the duplicate is ignored, because 5 holds the lock";
    EXPECT_TRUE(exclusive(6, 1));
    EXPECT_TRUE(desk.release(5, 1));
    EXPECT_FALSE(exclusive(5, 1)) << "the duplicate is ignored, because 5 has released this lock";
    EXPECT_EQ(next(), 6);
    EXPECT_FALSE(desk.release(5, 1)) << "5 released the lock before, and 6 holds it now";
    EXPECT_FALSE(board.try_exclusive(LockTable::holder_here(kNeighbour), kMe));
    EXPECT_EQ(next(), -1);
    EXPECT_TRUE(desk.release(6, 1));
    EXPECT_TRUE(board.try_exclusive(LockTable::holder_here(kNeighbour), kMe));
}

TEST_F(RemoteLockServerTest, AReleaseWithoutALockIsIgnored) {
    EXPECT_TRUE(exclusive(5, 1));
    EXPECT_FALSE(desk.release(5, 1)) << "5 still waits, so it has no lock to release";
    EXPECT_EQ(next(), 5);
    EXPECT_FALSE(desk.release(6, 1));
    EXPECT_FALSE(desk.release(5, 2)) << "the number is not that of the held lock";
    EXPECT_FALSE(desk.release(-1, 1));
    EXPECT_FALSE(board.try_exclusive(LockTable::holder_here(kNeighbour), kMe)) << "5 has it";
}

TEST_F(RemoteLockServerTest, AnOvertakingRequestWaitsForTheOneBefore) {
    for (const bool first_exclusive : {true, false}) {
        const uint32_t number = first_exclusive ? 1 : 3;
        EXPECT_TRUE(desk.add_request({5, number, first_exclusive}));
        EXPECT_EQ(next(), 5);
        EXPECT_TRUE(exclusive(5, number + 1));
        EXPECT_EQ(next(), -1) << "a second grant would let one release count for two";
        EXPECT_FALSE(shared(5, number + 2)) << "a correct process does not request a third lock at once";
        EXPECT_TRUE(desk.release(5, number));
        EXPECT_EQ(next(), 5);
        EXPECT_TRUE(desk.release(5, number + 1));
        EXPECT_TRUE(desk.idle());
    }
}

TEST_F(RemoteLockServerTest, SequenceNumbersWrapAround) {
    const uint32_t half = kCounterStart + 0x7fffffffu, last = kCounterStart + 0xfffffffeu;
    EXPECT_TRUE(exclusive(5, half));
    EXPECT_EQ(next(), 5);
    EXPECT_TRUE(desk.release(5, half));
    EXPECT_TRUE(exclusive(5, last));
    EXPECT_EQ(next(), 5);
    EXPECT_TRUE(desk.release(5, last));
    EXPECT_TRUE(exclusive(5, kCounterStart + 1));
    EXPECT_FALSE(exclusive(5, last));
}

TEST_F(RemoteLockServerTest, DeadProcessesHoldAndRequestNothing) {
    EXPECT_TRUE(shared(5, 1));
    EXPECT_EQ(next(), 5);
    EXPECT_TRUE(exclusive(6, 1));
    EXPECT_EQ(next(), -1);
    EXPECT_FALSE(board.try_shared(kNeighbour, kMe)) << "6 is in its way";
    EXPECT_FALSE(drop({7}));
    EXPECT_TRUE(drop({6}));
    EXPECT_TRUE(board.try_shared(kNeighbour, kMe));
    EXPECT_TRUE(drop({5}));
    EXPECT_TRUE(desk.idle());
    board.release_shared(kNeighbour, kMe);
    EXPECT_TRUE(board.try_exclusive(LockTable::holder_here(kNeighbour), kMe));
}

/// Whatever arrives, an exclusive lock has one holder, and after all honest releases the lock is free.
TEST_F(RemoteLockServerTest, ArbitraryPacketsNeverCreateTwoHolders) {
    for (uint32_t seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        const auto pick = [&](uint32_t below) { return random() % below; };
        RemoteLockServer::Claimant held[8] = {};
        int holders = 0, writers = 0;
        const auto serve_all = [&] {
            RemoteLockServer::Claimant served{};
            while (desk.serve(served)) {
                ASSERT_EQ(held[served.rank].number, 0u) << "seed " << seed << ": it has one already";
                ASSERT_EQ(writers, 0) << "seed " << seed;
                ASSERT_TRUE(!served.exclusive || holders == 0) << "seed " << seed;
                held[served.rank] = served;
                ++holders;
                writers += served.exclusive;
            }
        };
        for (int step = 0; step < 300; ++step) {
            const int rank = static_cast<int>(pick(8));
            const uint32_t number = seed * 64 + pick(64);
            if (pick(2)) {
                desk.add_request({rank, number, pick(2) == 0});
            } else if (desk.release(rank, pick(4) ? held[rank].number : number)) {
                --holders;
                writers -= held[rank].exclusive;
                held[rank] = {};
            }
            serve_all();
        }
        drop({0, 1, 2, 3, 4, 5, 6, 7});
        ASSERT_TRUE(desk.idle());
        ASSERT_TRUE(board.try_exclusive(LockTable::holder_here(kNeighbour), kMe)) << "seed " << seed;
        board.release_exclusive(kMe);
    }
}

}  // namespace
}  // namespace starling::window
