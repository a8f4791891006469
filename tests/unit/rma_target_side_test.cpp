// The target side of accesses: executes correct packets, and refuses wrong ones without touching any memory.
#include "rma/target_side.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "base/error.h"
#include "rma/region.h"
#include "rma/update.h"

namespace starling::rma {
namespace {

class Owner : public testing::Test {
  protected:
    void SetUp() override {
        memory.assign(64, 0);
        key = expose(memory.data(), 64 * sizeof(uint64_t), &exclusion);
    }
    void TearDown() override {
        withdraw(key);
        clear_failure();
    }

    /// Delivers an access packet with any contents. Only the length in its packet header is always right.
    AccessOperation ask(AccessOperation operation, AccessPacket says, const std::vector<BlockRun>& runs,
                        const std::vector<uint64_t>& data) {
        payload.resize(sizeof says + runs.size() * sizeof(BlockRun) + data.size() * sizeof(uint64_t));
        std::memcpy(payload.data(), &says, sizeof says);
        if (!runs.empty()) std::memcpy(payload.data() + sizeof says, runs.data(), runs.size() * sizeof(BlockRun));
        if (!data.empty())
            std::memcpy(payload.data() + sizeof says + runs.size() * sizeof(BlockRun), data.data(),
                        data.size() * sizeof(uint64_t));
        return deliver(operation, static_cast<uint32_t>(payload.size()));
    }
    AccessOperation deliver(AccessOperation operation, uint32_t bytes) {
        packet::Header header{};
        header.kind = packet::PacketKind::access;
        header.operation = static_cast<uint8_t>(operation);
        header.bytes = bytes;
        result.clear();
        return do_access({header, payload.data()}, result);
    }
    AccessPacket says(uint32_t runs, uint32_t bytes) const {
        const auto element = static_cast<uint16_t>(datatype::predefined(MPI_UINT64_T).pool_index);
        const auto op = static_cast<uint16_t>(datatype::predefined(MPI_SUM).pool_index);
        return {key.secret, key.id, runs, bytes, element, op};
    }
    void expect_untouched() const {
        for (const uint64_t word : memory) EXPECT_EQ(word, 0u);
    }

    std::vector<uint64_t> memory;
    std::vector<std::byte> payload, result;
    RegionKey key;
    Guard guard{};
    UpdateMark mark{};
    UpdateLock exclusion{guard, &mark, 1, 0, 0};
};

TEST_F(Owner, ExecutesCorrectPackets) {
    EXPECT_EQ(ask(AccessOperation::put, says(2, 16), {{0, 8}, {504, 8}}, {7, 9}), AccessOperation::done);
    EXPECT_EQ(memory[0], 7u);
    EXPECT_EQ(memory[63], 9u);
    EXPECT_EQ(ask(AccessOperation::update, says(1, 8), {{0, 8}}, {3}), AccessOperation::done);
    EXPECT_EQ(memory[0], 10u);
    EXPECT_EQ(ask(AccessOperation::fetch_update, says(1, 8), {{0, 8}}, {5}), AccessOperation::data);
    EXPECT_EQ(result.size(), 8u);
    EXPECT_EQ(static_cast<int>(result[0]), 10);
    EXPECT_EQ(memory[0], 15u);
    EXPECT_EQ(ask(AccessOperation::compare_swap, says(1, 8), {{0, 8}}, {1, 15}), AccessOperation::data);
    EXPECT_EQ(memory[0], 1u);
    EXPECT_EQ(ask(AccessOperation::get, says(2, 16), {{504, 8}, {0, 8}}, {}), AccessOperation::data);
    ASSERT_EQ(result.size(), 16u);
    EXPECT_EQ(static_cast<int>(result[0]), 9);
    EXPECT_EQ(static_cast<int>(result[8]), 1);
}

TEST_F(Owner, RefusesAccessesOutsideTheRegion) {
    EXPECT_EQ(ask(AccessOperation::put, says(1, 8), {{505, 8}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::put, says(1, 8), {{512, 8}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::put, says(1, 8), {{~uint64_t{7}, 8}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::get, says(1, 8), {{~uint64_t{0} - 3, 8}}, {}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::update, says(1, 8), {{510, 8}}, {7}), AccessOperation::refused);
    // One of several block runs is outside of the region: none is executed.
    EXPECT_EQ(ask(AccessOperation::put, says(2, 16), {{0, 8}, {510, 8}}, {7, 9}), AccessOperation::refused);
    EXPECT_TRUE(result.empty());
    expect_untouched();
}

TEST_F(Owner, RefusesLengthsThatDoNotAddUp) {
    EXPECT_EQ(ask(AccessOperation::put, says(1, 8), {{0, 16}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::put, says(1, 16), {{0, 16}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::put, says(2, 8), {{0, 8}}, {7}), AccessOperation::refused)
        << "the second run would be the packet's data";
    EXPECT_EQ(ask(AccessOperation::put, says(0, 8), {}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::put, says(1, 8), {{0, ~uint64_t{0}}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::put, says(~0u, 8), {{0, 8}}, {7}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::update, says(1, 4), {{0, 4}}, {7}), AccessOperation::refused) << "half an element";
    EXPECT_EQ(ask(AccessOperation::compare_swap, says(2, 8), {{0, 4}, {8, 4}}, {7, 9}), AccessOperation::refused);
    EXPECT_EQ(ask(AccessOperation::compare_swap, says(1, 8), {{0, 8}}, {7}), AccessOperation::refused)
        << "nothing to compare with";
    EXPECT_EQ(ask(AccessOperation::get, says(1, 8), {{0, 8}}, {7}), AccessOperation::refused) << "a get with data";
    // Refuse a get that is longer than any correct packet requests: otherwise the requester could make the reply arbitrarily large.
    const std::vector<BlockRun> all(128, BlockRun{0, 512});
    EXPECT_EQ(ask(AccessOperation::get, says(128, 128 * 512), all, {}), AccessOperation::refused);
    for (uint32_t cut = 0; cut < 48; ++cut) {
        ask(AccessOperation::put, says(1, 8), {{0, 8}}, {0});
        EXPECT_EQ(deliver(AccessOperation::put, cut), AccessOperation::refused) << cut;
    }
    expect_untouched();
}

TEST_F(Owner, RefusesAWrongRegionKey) {
    AccessPacket wrong = says(1, 8);
    wrong.secret ^= 4;
    EXPECT_EQ(ask(AccessOperation::put, wrong, {{0, 8}}, {7}), AccessOperation::refused);
    wrong = says(1, 8);
    wrong.region += 500;
    EXPECT_EQ(ask(AccessOperation::put, wrong, {{0, 8}}, {7}), AccessOperation::refused);
    wrong.secret = 0;
    EXPECT_EQ(ask(AccessOperation::put, wrong, {{0, 8}}, {7}), AccessOperation::refused);
    expect_untouched();
}

TEST_F(Owner, RefusesInvalidElementTypesAndOperations) {
    for (const uint16_t element : {0, 0x1ff, 0x200, 0x2ff, 0x300, 0xffff}) {
        AccessPacket wrong = says(1, 8);
        wrong.element = element;
        EXPECT_EQ(ask(AccessOperation::update, wrong, {{0, 8}}, {7}), AccessOperation::refused) << element;
        EXPECT_EQ(ask(AccessOperation::compare_swap, wrong, {{0, 8}}, {7, 0}), AccessOperation::refused) << element;
    }
    for (const uint16_t op : {0, 0x1f, 0x20, 0x3f, 0x40, 0xffff}) {
        AccessPacket wrong = says(1, 8);
        wrong.op = op;
        EXPECT_EQ(ask(AccessOperation::update, wrong, {{0, 8}}, {7}), AccessOperation::refused) << op;
    }
    for (const uint8_t operation : {0, 6, 7, 8, 9, 10, 255})
        EXPECT_EQ(ask(static_cast<AccessOperation>(operation), says(1, 8), {{0, 8}}, {7}), AccessOperation::refused)
            << int{operation};
    expect_untouched();
}

TEST_F(Owner, RefusesWithdrawnRegions) {
    withdraw(key);
    EXPECT_EQ(ask(AccessOperation::put, says(1, 8), {{0, 8}}, {7}), AccessOperation::refused);
    expect_untouched();
}

}  // namespace
}  // namespace starling::rma
