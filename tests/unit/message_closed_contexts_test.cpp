// The set of contexts that a process has freed.
#include "message/closed_contexts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

namespace starling::message {
namespace {

TEST(ClosedContexts, ContainsExactlyTheAddedContexts) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 50; ++round) {
        ClosedContexts retired;
        std::set<uint64_t> model;
        const uint64_t base = random() >> 4;
        for (int i = 0; i < 400; ++i) {
            const uint64_t number = base + random() % 300;
            retired.add(number);
            model.insert(number);
            size_t stretches = 0;
            for (const uint64_t one : model) stretches += model.count(one - 1) == 0;
            ASSERT_EQ(retired.stretches(), stretches);
        }
        for (uint64_t number = base - 5; number < base + 305; ++number)
            ASSERT_EQ(retired.contains(number), model.count(number) == 1) << number - base;
    }
}

TEST(ClosedContexts, ContextsFreedInAnyOrderMergeIntoOneRange) {
    ClosedContexts retired;
    std::vector<uint64_t> numbers(3000);
    std::iota(numbers.begin(), numbers.end(), uint64_t{1} << 59);
    std::shuffle(numbers.begin(), numbers.end(), std::mt19937(3));
    for (const uint64_t number : numbers) retired.add(number);
    EXPECT_EQ(retired.stretches(), 1u);
    for (uint64_t number = 0; number < 1'000'000; ++number) retired.add((uint64_t{1} << 59) + 3000 + number);
    EXPECT_EQ(retired.stretches(), 1u);
}

TEST(ClosedContexts, IsBoundedAndNeverContainsOtherContexts) {
    ClosedContexts retired;
    for (uint64_t i = 0; i < 5 * ClosedContexts::kMost; ++i) retired.add(2 * i);
    EXPECT_LE(retired.stretches(), ClosedContexts::kMost);
    for (uint64_t i = 0; i < 5 * ClosedContexts::kMost; ++i) ASSERT_FALSE(retired.contains(2 * i + 1));
}

}  // namespace
}  // namespace starling::message
