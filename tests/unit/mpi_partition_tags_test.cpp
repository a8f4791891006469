// Tags of partitioned sends: consecutive, and never those of an active send.
#include <gtest/gtest.h>

#include <map>
#include <new>
#include <random>

#include "mpi/pt2pt/partition_tags.h"

namespace {

using starling::mpi::PartitionTags;
constexpr uint32_t kTags = PartitionTags::kTags;

TEST(PartitionTags, AreConsecutive) {
    PartitionTags tags(0);
    EXPECT_EQ(tags.draw(3), 0u);
    EXPECT_EQ(tags.draw(5), 3u);
    tags.release(0);
    EXPECT_EQ(tags.draw(2), 8u);
}

TEST(PartitionTags, OfAnActiveSendAreNotReused) {
    PartitionTags tags(0);
    const uint32_t stays = tags.draw(128);
    for (uint64_t drawn = 0; drawn < 3 * uint64_t{kTags}; drawn += 1u << 20) {
        const uint32_t first = tags.draw(1u << 20);
        EXPECT_LE(first, kTags - (1u << 20));
        ASSERT_GE(first, stays + 128);
        tags.release(first);
    }
}

TEST(PartitionTags, AreLimitedInNumber) {
    PartitionTags tags(1000);
    const uint32_t half = tags.draw(kTags / 2);
    const uint32_t most = tags.draw(kTags / 2 - 1000);
    EXPECT_EQ(half, 1000u);
    EXPECT_THROW(tags.draw(1001), std::bad_alloc);
    EXPECT_EQ(tags.draw(1000), 0u);
    EXPECT_THROW(tags.draw(1), std::bad_alloc);
    tags.release(most);
    EXPECT_EQ(tags.draw(1), most);
}

TEST(PartitionTags, NoneIsAssignedTwiceInRandomUse) {
    std::mt19937_64 random(1);
    PartitionTags tags(kTags - 100);
    std::map<uint32_t, uint32_t> held;
    for (int step = 0; step < 20000; ++step) {
        if (!held.empty() && random() % 2) {
            const auto gone = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
            tags.release(gone->first);
            held.erase(gone);
            continue;
        }
        const auto count = static_cast<uint32_t>(1 + random() % (kTags / 200));
        const uint32_t first = tags.draw(count);
        const auto behind = held.lower_bound(first);
        ASSERT_TRUE(behind == held.end() || behind->first - first >= count);
        ASSERT_TRUE(behind == held.begin() || std::prev(behind)->first + std::prev(behind)->second <= first);
        ASSERT_LE(count, kTags - first);
        held.emplace(first, count);
    }
}

}  // namespace
