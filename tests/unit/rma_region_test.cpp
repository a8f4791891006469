// RMA regions: which memory is accessible, with which key, and until when.
#include "rma/region.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "mpi.h"

namespace starling::rma {
namespace {

TEST(Region, IsAccessibleOnlyWithinItsBytes) {
    std::vector<std::byte> memory(100);
    const RegionKey key = expose(memory.data(), memory.size());
    const Region* region = find_region(key.id, key.secret);
    ASSERT_NE(region, nullptr);
    EXPECT_EQ(region->at(0, 100), memory.data());
    EXPECT_EQ(region->at(99, 1), memory.data() + 99);
    EXPECT_EQ(region->at(100, 0), memory.data() + 100);
    EXPECT_EQ(region->at(99, 2), nullptr);
    EXPECT_EQ(region->at(101, 0), nullptr);
    // Offsets so large that the end wraps around are refused too.
    EXPECT_EQ(region->at(~uint64_t{0}, 2), nullptr);
    EXPECT_EQ(region->at(1, ~uint64_t{0}), nullptr);
    withdraw(key);
}

TEST(Region, OfAddressesIsAccessibleAcrossAdjacentParts) {
    alignas(64) static std::byte memory[100];
    const RegionKey key = expose_addresses();
    ASSERT_EQ(attach(key, memory + 40, 20), MPI_SUCCESS);
    ASSERT_EQ(attach(key, memory, 40), MPI_SUCCESS);
    ASSERT_EQ(attach(key, memory + 60, 10), MPI_SUCCESS);
    ASSERT_EQ(attach(key, memory + 71, 10), MPI_SUCCESS);
    const Region* region = find_region(key.id, key.secret);
    ASSERT_NE(region, nullptr);
    const auto first = reinterpret_cast<uint64_t>(memory);
    EXPECT_EQ(region->at(first, 70), memory);
    EXPECT_EQ(region->at(first + 39, 2), memory + 39);
    EXPECT_EQ(region->at(first + 40, 30), memory + 40);
    EXPECT_EQ(region->at(first, 71), nullptr) << "the access includes a byte between two attached ranges";
    EXPECT_EQ(region->at(first + 71, 11), nullptr);
    EXPECT_EQ(region->at(first + 39, ~uint64_t{0}), nullptr);
    ASSERT_EQ(detach(key, memory + 40), MPI_SUCCESS);
    EXPECT_EQ(region->at(first, 70), nullptr);
    withdraw(key);
}

TEST(Region, NeedsItsSecret) {
    std::vector<std::byte> memory(8);
    const RegionKey key = expose(memory.data(), memory.size());
    EXPECT_EQ(find_region(key.id, key.secret ^ 2), nullptr);
    EXPECT_EQ(find_region(key.id, 0), nullptr);
    EXPECT_EQ(find_region(key.id + 1000, key.secret), nullptr);
    withdraw(key);
    EXPECT_EQ(find_region(key.id, key.secret), nullptr);
    EXPECT_EQ(find_region(key.id, 0), nullptr) << "a free slot is not a region";
    // The next region reuses the slot, with another secret.
    const RegionKey next = expose(memory.data(), memory.size());
    EXPECT_EQ(next.id, key.id);
    EXPECT_NE(next.secret, key.secret);
    EXPECT_EQ(find_region(key.id, key.secret), nullptr);
    withdraw(next);
}

TEST(Region, GetsItsFinalSecretWhenOpened) {
    std::vector<std::byte> memory(8);
    const RegionKey first = expose(memory.data(), memory.size());
    EXPECT_FALSE(is_awaited(first.id));
    await_secret(first);
    EXPECT_TRUE(is_awaited(first.id)) << "accesses must wait for the secret";
    const RegionKey key = open(first, first.secret ^ 4);
    EXPECT_FALSE(is_awaited(key.id));
    EXPECT_EQ(key.id, first.id);
    EXPECT_EQ(key.bytes, first.bytes);
    EXPECT_EQ(find_region(key.id, first.secret), nullptr);
    EXPECT_NE(find_region(key.id, key.secret), nullptr);
    withdraw(key);
    // When the creation of a window fails, its region is withdrawn before it gets its secret.
    const RegionKey failed = expose(memory.data(), memory.size());
    await_secret(failed);
    withdraw(failed);
    EXPECT_FALSE(is_awaited(failed.id));
}

TEST(Region, OfAddressesContainsItsAttachedParts) {
    std::vector<std::byte> memory(300);
    const RegionKey key = expose_addresses();
    const auto at = [](const std::byte* p) { return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(p)); };
    const auto reached = [&](size_t offset, uint64_t bytes) {
        return find_region(key.id, key.secret)->at(at(memory.data() + offset), bytes);
    };
    EXPECT_EQ(reached(0, 1), nullptr);
    EXPECT_EQ(attach(key, memory.data() + 100, 100), MPI_SUCCESS);
    EXPECT_EQ(reached(100, 100), memory.data() + 100);
    EXPECT_EQ(reached(100, 101), nullptr);
    EXPECT_EQ(reached(99, 1), nullptr);
    // A range that overlaps an attached one is refused; an adjacent one is not.
    EXPECT_EQ(attach(key, memory.data() + 150, 10), MPI_ERR_RMA_ATTACH);
    EXPECT_EQ(attach(key, memory.data() + 50, 51), MPI_ERR_RMA_ATTACH);
    EXPECT_EQ(attach(key, memory.data(), 300), MPI_ERR_RMA_ATTACH);
    EXPECT_EQ(attach(key, memory.data() + 200, 100), MPI_SUCCESS);
    EXPECT_EQ(detach(key, memory.data() + 101), MPI_ERR_RMA_ATTACH);
    EXPECT_EQ(detach(key, memory.data() + 100), MPI_SUCCESS);
    EXPECT_EQ(detach(key, memory.data() + 100), MPI_ERR_RMA_ATTACH);
    EXPECT_EQ(reached(100, 1), nullptr);
    EXPECT_EQ(reached(200, 100), memory.data() + 200);
    withdraw(key);
    clear_failure();
}

}  // namespace
}  // namespace starling::rma
