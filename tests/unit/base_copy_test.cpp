#include "base/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace starling {
namespace {

// Every alignment of both sides, lengths around lines: nothing but the target changes, and it becomes what was to be copied.
TEST(Copy, ForAnotherCoreIsACopy) {
    std::mt19937_64 random(7);
    std::vector<std::byte> from(5000);
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    for (size_t length : {0u, 1u, 15u, 16u, 63u, 64u, 65u, 127u, 1000u, 4096u, 4097u})
        for (size_t to_offset = 0; to_offset < 65; ++to_offset) {
            const size_t from_offset = random() % 65;
            alignas(64) std::byte target[5000];
            std::fill(std::begin(target), std::end(target), std::byte{0xA5});
            copy_for_another_core(target + to_offset, from.data() + from_offset, length);
            ASSERT_TRUE(std::equal(target + to_offset, target + to_offset + length, from.begin() + static_cast<long>(from_offset)))
                << length << " bytes to offset " << to_offset;
            const auto untouched = [](std::byte b) { return b == std::byte{0xA5}; };
            ASSERT_TRUE(std::all_of(target + 0, target + to_offset, untouched));
            ASSERT_TRUE(std::all_of(target + to_offset + length, std::end(target), untouched));
        }
}

}  // namespace
}  // namespace starling
