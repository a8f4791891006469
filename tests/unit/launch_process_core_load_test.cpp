// The cores on which new ranks start, chosen by the core use that this user's other launchers report.
#include "launch/process/core_load.h"

#include <gtest/gtest.h>

#include "job/places.h"

namespace starling::launch {
namespace {

std::vector<uint32_t> none(uint32_t) { return {}; }
/// Eight hardware threads, two on each of four cores: 0 and 4 share one.
std::vector<uint32_t> paired(uint32_t cpu) { return {(cpu + 4) % 8}; }

cpu_set_t set_of(std::initializer_list<int> cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : cpus) CPU_SET(cpu, &set);
    return set;
}

bool equal(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b); }

TEST(CoreUse, NewRanksStartOnTheLeastUsedCores) {
    CoreUse use;
    const cpu_set_t all = set_of({0, 1, 2, 3});
    EXPECT_TRUE(equal(use.least_used(all, none), all)) << "the kernel chooses among equals";
    use.add(1);
    EXPECT_TRUE(equal(use.least_used(all, none), set_of({0, 2, 3})));
    for (const uint32_t cpu : {0u, 2u, 3u, 3u}) use.add(cpu);
    EXPECT_TRUE(equal(use.least_used(all, none), set_of({0, 1, 2})));
    EXPECT_EQ(use.ranks(), 5u);
}

TEST(CoreUse, WholeCoresComeBeforeSecondHardwareThreads) {
    CoreUse use;
    const cpu_set_t all = set_of({0, 1, 2, 3, 4, 5, 6, 7});
    use.add(0);
    use.add(6);
    EXPECT_TRUE(equal(use.least_used(all, paired), set_of({1, 3, 5, 7})));
    for (const uint32_t cpu : {1u, 3u}) use.add(cpu);
    EXPECT_TRUE(equal(use.least_used(all, paired), set_of({2, 4, 5, 7})));
}

TEST(CoreUse, OnlyCoresOfTheMaskAreChosen) {
    CoreUse use;
    use.add(2);
    use.add(900);
    EXPECT_TRUE(equal(use.least_used(set_of({2, 3}), none), set_of({3})));
    EXPECT_TRUE(equal(use.least_used(set_of({2}), none), set_of({2})));
}

TEST(CoreUse, CountsTheRanksOfAJobThatHaveNotEnded) {
    job::JobSegment segment;
    ASSERT_EQ(job::JobSegment::create(5, nullptr, 0, segment), 0);
    segment.place(0).store(job::CpuLocation::on(3));
    segment.place(1).store(job::CpuLocation::on(3) | job::CpuLocation::kAsleep);
    segment.place(2).store(job::CpuLocation::on(1));
    segment.cell(2).state.store(job::RankState::exited);
    segment.cell(3).state.store(job::RankState::initialized);  // rank 3 has not published its core
    segment.place(4).store(job::CpuLocation::on(0));
    segment.cell(4).state.store(job::RankState::failed);
    CoreUse use;
    use.add(segment);
    EXPECT_EQ(use.ranks(), 3u);
    EXPECT_EQ(use.on(3), 2u);
    EXPECT_EQ(use.on(1), 0u);
    EXPECT_EQ(use.on(0), 0u);
}

TEST(CoreUse, FindsTheLaunchersOfThisUserByTheirSockets) {
    const std::string sockets =
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 11 @starling-1000-77-2af\n"
        "0000000000000000: 00000003 00000000 00000000 0001 03 12 @starling-1000-77-2af\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 13 @starling-1001-78-1\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 14 @starling-1000-79-fff\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 15 @starling-1000-daemon\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 16 /run/starling-1000-80-f\n"
        "0000000000000000: 00000002 00000000 00010000 0001 01 17 @starling-1000-81";
    EXPECT_EQ(launchers_in(sockets, 1000, 5), (std::vector<int32_t>{77, 79}));
    EXPECT_EQ(launchers_in(sockets, 1000, 77), (std::vector<int32_t>{79}));
    EXPECT_TRUE(launchers_in("", 1000, 5).empty());
}

TEST(CoreUse, ParsesTheKernelsCpuListsAndQuotas) {
    EXPECT_EQ(parse_cpu_list("0-2,8\n"), (std::vector<uint32_t>{0, 1, 2, 8}));
    EXPECT_EQ(parse_cpu_list("5"), (std::vector<uint32_t>{5}));
    EXPECT_TRUE(parse_cpu_list("").empty());
    EXPECT_TRUE(parse_cpu_list("x").empty());
    EXPECT_EQ(cores_of_quota("max 100000\n"), ~0u);
    EXPECT_EQ(cores_of_quota("150000 100000\n"), 2u);
    EXPECT_EQ(cores_of_quota("20000 100000\n"), 1u);
    EXPECT_EQ(cores_of_quota(""), ~0u);
    EXPECT_EQ(cores_of_quota("1 0"), ~0u);
    EXPECT_GE(cores_allowed(), 1u);
}

}  // namespace
}  // namespace starling::launch
