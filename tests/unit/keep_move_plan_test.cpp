#include "keep/move_plan.h"

#include <gtest/gtest.h>

#include <cstdio>

namespace starling::keep {
namespace {

/// The processes of a communicator before a move, in which each has saved a block of 100 bytes, kept by itself and by the next rank.
class MovePlans : public testing::Test {
  protected:
    static BlockRecord record(const char* name, int64_t version, int owners, int owner, bool is_own) {
        BlockRecord one;
        snprintf(one.name, sizeof one.name, "%s", name);
        one.version = version, one.owners = owners, one.owner = owner, one.is_own = is_own;
        one.bytes = owner == BlockRecord::kVersion ? 0 : 100;
        return one;
    }

    /// Adds the process that has saved `owner`'s block.
    void survive(int owner, int owners, std::initializer_list<int64_t> versions = {1}) {
        members.push_back({1000, 0, 1, 0, 0});
        records.emplace_back();
        for (int64_t version : versions) {
            records.back().push_back(record("a", version, owners, BlockRecord::kVersion, false));
            records.back().push_back(record("a", version, owners, owner, true));
            records.back().push_back(record("a", version, owners, (owner + owners - 1) % owners, false));
        }
    }
    void join() {
        members.push_back({1000, 0, 0, 0, 0});
        records.emplace_back();
    }

    MovePlan plan() {
        const int n = static_cast<int>(members.size());
        std::vector<int> partners(n);
        for (int rank = 0; rank < n; ++rank) partners[rank] = n > 1 ? (rank + 1) % n : -1;
        return plan_move(members, records, partners);
    }

    std::vector<MemberReport> members;
    std::vector<std::vector<BlockRecord>> records;
};

TEST_F(MovePlans, ThePartnerOfAFailedOwnerTakesItsBlockOver) {
    for (int owner : {0, 2, 3}) survive(owner, 4);
    const MovePlan result = plan();
    const PlannedVersion& version = result.versions.at("a").at(1);
    EXPECT_EQ(version.keepers[1], (BlockKeepers{1, 2}));  // the process that was rank 2 had the copy
    EXPECT_EQ(version.keepers[0], (BlockKeepers{0, 1}));  // its partner has failed
    EXPECT_EQ(version.keepers[2], (BlockKeepers{1, 2}));
    ASSERT_EQ(result.transfers.size(), 2u);
    for (const BlockTransfer& transfer : result.transfers) {
        EXPECT_EQ(transfer.from, transfer.owner == 0 ? 0 : 1);
        EXPECT_EQ(transfer.to, transfer.from + 1);
    }
}

TEST_F(MovePlans, ASubstituteGetsTheBlockOfItsRankAndThatOfItsWard) {
    survive(0, 3);
    join();
    survive(2, 3);
    const MovePlan result = plan();
    for (int owner = 0; owner < 3; ++owner)
        EXPECT_EQ(result.versions.at("a").at(1).keepers[owner], (BlockKeepers{owner, (owner + 1) % 3})) << owner;
    ASSERT_EQ(result.transfers.size(), 2u);
    for (const BlockTransfer& transfer : result.transfers) EXPECT_EQ(transfer.to, 1);
}

TEST_F(MovePlans, ABlockIsLostIfOwnerAndPartnerHaveFailed) {
    for (int owner : {0, 3}) survive(owner, 4);
    const MovePlan result = plan();
    const PlannedVersion& version = result.versions.at("a").at(1);
    EXPECT_EQ(version.keepers[1], (BlockKeepers{-1, -1}));
    for (int owner : {0, 2, 3}) EXPECT_GE(version.keepers[owner][1], 0) << owner;
}

TEST_F(MovePlans, AVersionCountsOnlyIfItCountsOnAllSurvivors) {
    survive(0, 3, {1, 2});
    survive(1, 3, {1});
    join();
    const MovePlan result = plan();
    EXPECT_EQ(result.versions.at("a").size(), 1u);
    EXPECT_TRUE(result.versions.at("a").contains(1));
}

TEST_F(MovePlans, ABoundForbidsCopiesAndTheMissingBytesAreReported) {
    for (int owner : {0, 2, 3}) survive(owner, 4);
    members[2].bound = 250;  // has two blocks already, and would get a third one
    const MovePlan result = plan();
    EXPECT_EQ(result.missing, (std::vector<uint64_t>{0, 0, 50}));
    EXPECT_EQ(result.versions.at("a").at(1).keepers[1], (BlockKeepers{1, -1}));
    EXPECT_EQ(result.transfers.size(), 1u);
}

TEST_F(MovePlans, TransfersComeFromMembersThatHaveTheBlockBeforeTheMove) {
    // Both keepers of owner 1's block in the new communicator are new.
    survive(0, 4);
    join();
    join();
    survive(2, 4);
    const MovePlan result = plan();
    for (const BlockTransfer& transfer : result.transfers) EXPECT_EQ(transfer.from % 3, 0);
    EXPECT_EQ(result.versions.at("a").at(1).keepers[1], (BlockKeepers{1, 2}));
}

}  // namespace
}  // namespace starling::keep
