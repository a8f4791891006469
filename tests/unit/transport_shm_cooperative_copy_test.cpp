// The division of a long message into chunks that sender and receiver copy.
#include "transport/shm/cooperative_copy.h"

#include <gtest/gtest.h>

#include <set>

namespace starling::shm {
namespace {

TEST(CooperativeCopy, EachChunkIsClaimedOnceFromEitherSide) {
    SplitSlot slot{};
    const auto generation = open_split(slot);
    std::set<int64_t> claimed;
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(claimed.insert(claim_chunk(slot, generation, 16, i % 3 == 0)).second);
    EXPECT_EQ(*claimed.begin(), 0);
    EXPECT_EQ(*claimed.rbegin(), 15);
    EXPECT_EQ(claim_chunk(slot, generation, 16, true), -1);
    EXPECT_EQ(claim_chunk(slot, generation, 16, false), -1);
    EXPECT_EQ(claimed_from_back(slot), 6u);
}

// A sender may join so late that the slot has served many other messages since.
TEST(CooperativeCopy, ALateSenderNeverMatchesAReusedGeneration) {
    SplitSlot slot{};
    const auto late = open_split(slot);
    for (uint32_t later = 0; later < 1u << 18; ++later) {
        const auto generation = open_split(slot);
        ASSERT_NE(generation, late);
        ASSERT_EQ(claim_chunk(slot, late, 16, true), -1) << "after " << later << " messages";
    }
}

TEST(CooperativeCopy, ChunksCoverTheMessageAndTheirNumberFits) {
    for (uint64_t bytes = 1; bytes < uint64_t{1} << 50; bytes += bytes / 7 + 1) {
        const uint64_t chunk = split_chunk(bytes);
        EXPECT_EQ(chunk % 4096, 0u);
        EXPECT_LE((bytes + chunk - 1) / chunk, kSplitChunks) << bytes;
    }
}

}  // namespace
}  // namespace starling::shm
