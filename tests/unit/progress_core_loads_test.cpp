// Whether a process that shares its core should move to another one, by the words of the other processes in the table of cores.
#include "progress/core_loads.h"

#include <gtest/gtest.h>

#include <vector>

namespace starling::progress {
namespace {

using job::CpuLocation;

uint32_t awake(uint32_t cpu) { return CpuLocation::on(cpu); }
uint32_t asleep(uint32_t cpu) { return CpuLocation::on(cpu) | CpuLocation::kAsleep; }
uint32_t contested(uint32_t cpu) { return CpuLocation::on(cpu) | CpuLocation::kContested; }

/// Returns whether a process on core 0 should move to core 1; `others`: the words of the other processes.
bool should_move(const std::vector<uint32_t>& others) {
    CoreLoads loads;
    for (const uint32_t word : others) loads.add(word);
    return loads.should_move(0, 1);
}

TEST(CoreLoads, OneOfTwoMovesToAFreeCore) {
    EXPECT_TRUE(should_move({awake(0)}));
    EXPECT_TRUE(should_move({awake(0), awake(0), awake(0)}));
    EXPECT_FALSE(should_move({awake(0), awake(1)}));
}

TEST(CoreLoads, OneOfThreeMovesToACoreWithOne) {
    EXPECT_TRUE(should_move({awake(0), awake(0), awake(1)}));
    EXPECT_FALSE(should_move({awake(0), awake(1), awake(1)})) << "two on each core stay";
    EXPECT_TRUE(should_move({awake(0), awake(0), awake(0), awake(1)}));
}

TEST(CoreLoads, LargerGroupsAreLeftToTheKernel) {
    std::vector<uint32_t> others(12, awake(0));
    others.insert(others.end(), 3, awake(1));
    EXPECT_FALSE(should_move(others));
    EXPECT_FALSE(should_move({awake(0), awake(0), awake(0), awake(1), asleep(1)}));
}

TEST(CoreLoads, SleepersOnTheOtherCoreCount) {
    EXPECT_TRUE(should_move({awake(0), asleep(1)}));
    EXPECT_FALSE(should_move({awake(0), asleep(1), asleep(1)}));
    EXPECT_FALSE(should_move({asleep(0)})) << "a process that is alone awake stays";
}

TEST(CoreLoads, NoProcessJoinsOthersThatCompeteWithStrangers) {
    EXPECT_FALSE(should_move({awake(0), awake(0), contested(1)}));
    EXPECT_FALSE(should_move({awake(0), contested(1) | CpuLocation::kAsleep}));
    EXPECT_TRUE(should_move({awake(0), contested(0), contested(1)})) << "strangers are on both cores";
    EXPECT_TRUE(should_move({contested(0)})) << "alone with strangers is better than with neighbours and strangers";
}

TEST(CoreLoads, UnknownCoresDoNotCount) {
    EXPECT_TRUE(should_move({awake(0), CpuLocation::kNowhere, awake(CPU_SETSIZE)}));
    EXPECT_FALSE(CoreLoads().should_move(CPU_SETSIZE, 1));
}

}  // namespace
}  // namespace starling::progress
