#include "plan/cached_plan.h"

#include <gtest/gtest.h>

namespace starling::plan {
namespace {

TEST(CachedPlan, IsWrongIfMostMessagesGoToOtherPeers) {
    EXPECT_TRUE(is_wrong_plan(1000, 499));
    EXPECT_FALSE(is_wrong_plan(1000, 500));
    EXPECT_FALSE(is_wrong_plan(1000, 1000));
}

TEST(CachedPlan, FewMessagesDoNotJudgeIt) {
    EXPECT_FALSE(is_wrong_plan(255, 0));
    EXPECT_TRUE(is_wrong_plan(256, 0));
}

}  // namespace
}  // namespace starling::plan
