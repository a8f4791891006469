// The parts of collective transfers that need no other process: bits of a block, lists of pieces, and the dealing of blocks.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "file/aggregator_choice.h"
#include "file/block_map.h"
#include "file/deposit_bits.h"
#include "file/piece_list.h"

namespace starling::file {
namespace {

std::vector<Extent> random_pieces(std::mt19937& random, int64_t block) {
    std::vector<Extent> pieces;
    const int64_t longest = 1 << random() % 9, widest = 1 << random() % 9;
    for (int64_t at = static_cast<int64_t>(random() % 70); at < block;) {
        const int64_t bytes = std::min<int64_t>(block - at, 1 + static_cast<int64_t>(random()) % longest);
        pieces.push_back({at, bytes});
        at += bytes + 1 + static_cast<int64_t>(random()) % widest;
    }
    return pieces;
}

TEST(DepositBits, ReturnsExactlyTheMarkedRuns) {
    std::mt19937 random(7);
    for (int round = 0; round < 300; ++round) {
        const int64_t block = 1 + static_cast<int64_t>(random() % 5000);
        std::vector<std::byte> memory(DepositBits::memory_for(block));
        DepositBits bits(memory.data());
        const std::vector<Extent> pieces = random_pieces(random, block);
        {
            DepositBits::Marker marker(bits);
            for (const Extent& piece : pieces) marker.mark(piece.offset, piece.bytes);
        }
        int64_t at = 0;
        for (const Extent& piece : pieces) {
            const Extent run = bits.next_run(at, block);
            ASSERT_EQ(run.offset, piece.offset);
            ASSERT_EQ(run.bytes, piece.bytes);
            at = run.end();
        }
        EXPECT_EQ(bits.next_run(at, block).bytes, 0);
        bits.clear(block);
        EXPECT_EQ(bits.next_run(0, block).bytes, 0);
    }
}

TEST(DepositBits, JoinsRunsOverShortGaps) {
    std::vector<std::byte> memory(DepositBits::memory_for(1000));
    DepositBits bits(memory.data());
    for (const int64_t at : {0, 15, 31, 500}) DepositBits::Marker(bits).mark(at, 10);
    EXPECT_EQ(bits.next_run(0, 1000, 4).bytes, 10);
    EXPECT_EQ(bits.next_run(0, 1000, 5).bytes, 25);
    EXPECT_EQ(bits.next_run(0, 1000, 6).bytes, 41);
    EXPECT_EQ(bits.next_run(0, 1000, 999).bytes, 510);
}

TEST(PieceList, ReadsWhatWasWritten) {
    std::mt19937 random(9);
    for (int round = 0; round < 300; ++round) {
        const int64_t block = 1 + static_cast<int64_t>(random() % 20000);
        const std::vector<Extent> pieces = random_pieces(random, block);
        std::vector<std::byte> bytes;
        PieceListWriter writer(bytes);
        for (const Extent& piece : pieces) writer.add(piece);
        writer.finish();
        PieceListReader reader(bytes, block);
        for (const Extent& piece : pieces) {
            const Extent read = reader.next();
            ASSERT_EQ(read.offset, piece.offset);
            ASSERT_EQ(read.bytes, piece.bytes);
        }
        EXPECT_EQ(reader.next().bytes, 0);
    }
}

// 1024 equal pieces take two entries: the first has no gap in front of it.
TEST(PieceList, StoresEqualPiecesTogether) {
    std::vector<std::byte> bytes;
    PieceListWriter writer(bytes);
    for (int i = 0; i < 1024; ++i) writer.add({i * 4096, 1024});
    writer.finish();
    EXPECT_LE(bytes.size(), 12u);
}

// Lists come from other processes: whatever their bytes are, no piece leaves the block.
TEST(PieceList, NeverLeavesTheBlock) {
    std::mt19937 random(11);
    for (int round = 0; round < 2000; ++round) {
        std::vector<std::byte> bytes(random() % 40);
        for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() % 5 == 0 ? 0xff : random() % 200);
        PieceListReader reader(bytes, 1000);
        int64_t end = 0;
        for (Extent piece = reader.next(); piece.bytes > 0; piece = reader.next()) {
            ASSERT_GE(piece.offset, end);
            ASSERT_LE(piece.end(), 1000);
            end = piece.end();
        }
    }
}

TEST(BlockMap, VisitsEachBlockWithDataOnceAndCountsItsTurns) {
    const std::vector<Extent> ranges{{100, 250}, {5000, 0}, {1000, 1}, {320, 200}, {1'000'000'000'000, 64}};
    const BlockMap map(ranges, 64, 3);
    EXPECT_EQ(map.all().offset, 100);
    EXPECT_EQ(map.all().end(), 1'000'000'000'064);
    BlockMap::Walk walk(map);
    std::vector<int64_t> numbers;
    int64_t turns[3] = {};
    for (BlockMap::OwnedBlock block; walk.next(block); numbers.push_back(block.number)) {
        EXPECT_EQ(block.owner, block.number % 3);
        EXPECT_EQ(block.turn, turns[block.owner]++);
    }
    EXPECT_EQ(numbers, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 15, 15'625'000'000}));
    EXPECT_EQ(map.blocks(), 10);
}

TEST(BlockMap, AlignsBlocksToTheUnit) {
    EXPECT_EQ(choose_block({0, 1 << 30}, 8 << 20, 4096, 1, 4), 8 << 20);
    EXPECT_EQ(choose_block({0, 1 << 20}, 8 << 20, 4096, 4, 4) % 4096, 0);
    EXPECT_EQ(choose_block({0, 1 << 30}, 8 << 20, 3 << 20, 2, 4), 6 << 20);
    EXPECT_EQ(choose_block({0, 1 << 30}, 8 << 20, 16 << 20, 2, 4), 8 << 20);  // memory is bounded
    EXPECT_EQ(choose_block({0, 1}, 4096, 4096, 2, 4), 4096);
}

const std::vector<int> kHosts = {0, 0, 1, 1, 2, 0};
const std::vector<std::string> kNames = {"alpha.site", "beta", "gamma"};

std::vector<int> choose(int wanted, const char* placement) { return choose_aggregators(kHosts, kNames, wanted, placement); }

TEST(AggregatorChoice, TakesTheFirstMemberOfEachHost) {
    EXPECT_EQ(choose(0, ""), (std::vector{0, 2, 4}));
    EXPECT_EQ(choose(0, "*:1"), (std::vector{0, 2, 4}));
    EXPECT_EQ(choose(2, "*:1"), (std::vector{0, 2}));
}

TEST(AggregatorChoice, DealsAWantedNumberToTheHostsInTurn) {
    EXPECT_EQ(choose(4, ""), (std::vector{0, 2, 4, 1}));
    EXPECT_EQ(choose(99, ""), (std::vector{0, 2, 4, 1, 3, 5}));
    EXPECT_EQ(choose(0, "*:*"), (std::vector{0, 2, 4, 1, 3, 5}));
    EXPECT_EQ(choose(9, "*:2"), (std::vector{0, 2, 4, 1, 3}));
}

TEST(AggregatorChoice, NeedsNamesOnlyIfAHostIsNamed) {
    for (const char* placement : {"", "*", "*:2", " *:*, *:3"}) EXPECT_FALSE(names_hosts(placement)) << placement;
    for (const char* placement : {"beta", "*:1,beta:2", "beta:*"}) EXPECT_TRUE(names_hosts(placement)) << placement;
}

TEST(AggregatorChoice, FollowsAListOfHosts) {
    EXPECT_EQ(choose(0, "beta"), (std::vector{2}));
    EXPECT_EQ(choose(0, "gamma:1,alpha:2"), (std::vector{4, 0, 1}));
    EXPECT_EQ(choose(0, "alpha.site:*"), (std::vector{0, 1, 5}));
    EXPECT_EQ(choose(0, "beta:2, *:1"), (std::vector{2, 0, 4, 3}));
    EXPECT_EQ(choose(1, "beta:2, *:1"), (std::vector{2}));
}

// A hint must never leave a file without aggregators.
TEST(AggregatorChoice, IgnoresAListWithoutMembers) {
    for (const char* list : {"delta:3", "beta:0", "*:x", "beta:-1", ",", ":", "*:99999999999999999999"})
        EXPECT_EQ(choose(0, list), (std::vector{0, 2, 4})) << list;
}

}  // namespace
}  // namespace starling::file
