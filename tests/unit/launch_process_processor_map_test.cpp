#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "control/control_protocol.h"
#include "launch/common/processor_placement.h"
#include "launch/process/processor_map.h"

namespace starling::launch {
namespace {

// Two packages of one NUMA node and two L3 caches each, with two cores an L3 cache and two hardware threads a core: 16 threads. The second
// threads of all cores have the numbers from 8 on, as on most machines.
ProcessorMap two_packages() {
    std::vector<HardwareThread> threads;
    for (uint32_t core = 0; core < 8; ++core) {
        for (uint32_t which = 0; which < 2; ++which) {
            HardwareThread thread;
            thread.cpu = core + 8 * which;
            const auto set = [&](ProcessorPart part, uint32_t number) { thread.parts[static_cast<size_t>(part)] = number; };
            set(ProcessorPart::hwthread, 2 * core + which);
            for (const ProcessorPart part : {ProcessorPart::core, ProcessorPart::l1cache, ProcessorPart::l2cache})
                set(part, core);
            set(ProcessorPart::l3cache, core / 2);
            set(ProcessorPart::numa, core / 4);
            set(ProcessorPart::package, core / 4);
            threads.push_back(thread);
        }
    }
    return ProcessorMap(threads);
}

std::string cpus_of(const ProcessorClaim& claim) {
    std::vector<uint32_t> cpus;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &claim.cpus)) cpus.push_back(cpu);
    return cpus_text(cpus);
}

using Texts = std::vector<std::string>;

Texts claim(ProcessorMap& map, const ProcessorPlacement& wanted, uint32_t count, const std::string& problem = "") {
    std::vector<ProcessorClaim> claims;
    const std::string found = map.claim(wanted, count, claims);
    if (problem.empty())
        EXPECT_EQ(found, "");
    else
        EXPECT_NE(found.find(problem), std::string::npos) << found;
    Texts out;
    for (const ProcessorClaim& one : claims) out.push_back(cpus_of(one));
    return out;
}

Texts claim(const ProcessorPlacement& wanted, uint32_t count, const std::string& problem = "") {
    ProcessorMap map = two_packages();
    return claim(map, wanted, count, problem);
}

TEST(ProcessorMap, BindToCoreTakesBothHardwareThreadsOfOneCore) {
    EXPECT_EQ(claim({.bind = ProcessorPart::core}, 3), (Texts{"0,8", "1,9", "2,10"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::hwthread}, 3), (Texts{"0", "8", "1"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::core, .bind_count = 2}, 2), (Texts{"0-1,8-9", "2-3,10-11"}));
}

TEST(ProcessorMap, ProcessingElementsAreCoresUnlessHardwareThreadsCount) {
    EXPECT_EQ(claim({.elements = 2}, 4), (Texts{"0-1,8-9", "2-3,10-11", "4-5,12-13", "6-7,14-15"}));
    EXPECT_EQ(claim({.elements = 2, .counts_hwthreads = true}, 2), (Texts{"0,8", "1,9"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::package, .elements = 2}, 3), (Texts{"0-3,8-11", "0-3,8-11", "4-7,12-15"}));
}

TEST(ProcessorMap, MapByPackageTakesPackagesInTurn) {
    EXPECT_EQ(claim({.map = ProcessorPart::package}, 3), (Texts{"0-3,8-11", "4-7,12-15", "0-3,8-11"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::core, .map = ProcessorPart::package}, 4), (Texts{"0,8", "4,12", "1,9", "5,13"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::core, .map = ProcessorPart::l3cache}, 5),
              (Texts{"0,8", "2,10", "4,12", "6,14", "1,9"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::numa, .map = ProcessorPart::l3cache}, 3),
              (Texts{"0-3,8-11", "0-3,8-11", "4-7,12-15"}));
}

TEST(ProcessorMap, PerPartFillsAPartBeforeTheNext) {
    EXPECT_EQ(claim({.bind = ProcessorPart::core, .map = ProcessorPart::package, .per_part = 2}, 4),
              (Texts{"0,8", "1,9", "4,12", "5,13"}));
    EXPECT_EQ(claim({.map = ProcessorPart::l3cache, .per_part = 1, .elements = 2}, 2), (Texts{"0-1,8-9", "2-3,10-11"}));
}

TEST(ProcessorMap, RanksAreNumberedByPartInTurnOrPartByPart) {
    EXPECT_EQ(claim({.bind = ProcessorPart::core, .rank = ProcessorPart::package}, 6),
              (Texts{"0,8", "4,12", "1,9", "5,13", "2,10", "3,11"}));
    EXPECT_EQ(claim({.bind = ProcessorPart::core, .map = ProcessorPart::package, .rank_fills = true}, 4),
              (Texts{"0,8", "1,9", "4,12", "5,13"}));
}

TEST(ProcessorMap, CpuListLimitsTheProcessors) {
    ProcessorPlacement wanted{.cpus = {2, 3, 10}};
    EXPECT_EQ(claim(wanted, 2), (Texts{"2-3,10", "2-3,10"}));
    wanted.bind = ProcessorPart::core;
    EXPECT_EQ(claim(wanted, 3), (Texts{"2,10", "3", "2,10"}));
    EXPECT_EQ(claim({.lists = {{0, 2}, {1}}}, 3), (Texts{"0,2", "1", "0,2"}));
    EXPECT_EQ(claim({.cpus = {99}}, 1, "none of the cpus 99"), Texts{});
    EXPECT_EQ(claim({.lists = {{99}}}, 1, "cpu 99"), Texts{});
}

TEST(ProcessorMap, TooManyProcessorsAreRefusedAndClaimNothing) {
    ProcessorMap map = two_packages();
    EXPECT_EQ(claim(map, {.elements = 9}, 1, "needs 9 cores, and this host has 8"), Texts{});
    EXPECT_EQ(claim(map, {.map = ProcessorPart::package, .elements = 5}, 1, "a package of this host has 4"), Texts{});
    EXPECT_EQ(claim(map, {.bind = ProcessorPart::package, .bind_count = 3}, 1, "3 package parts"), Texts{});
    EXPECT_EQ(claim(map, {.bind = ProcessorPart::core}, 1), (Texts{"0,8"}));
}

TEST(ProcessorMap, LaterJobsTakeProcessorsWithFewProcesses) {
    ProcessorMap map = two_packages();
    const ProcessorPlacement core{.bind = ProcessorPart::core};
    std::vector<ProcessorClaim> first;
    EXPECT_EQ(map.claim(core, 2, first), "");
    EXPECT_EQ(claim(map, core, 1), (Texts{"2,10"}));
    map.release(first[0]);
    EXPECT_EQ(claim(map, core, 1), (Texts{"0,8"}));
    // With more processes than cores, the cores are shared.
    EXPECT_EQ(claim(core, 9).back(), "0,8");
}

TEST(ProcessorMap, AClaimIsReportedAsItsCoreOrItsCpus) {
    ProcessorMap map = two_packages();
    std::vector<ProcessorClaim> claims;
    EXPECT_EQ(map.claim({.bind = ProcessorPart::core}, 2, claims), "");
    EXPECT_EQ(map.text_of(claims[1]), "core 1");
    claims.clear();
    EXPECT_EQ(map.claim({.bind = ProcessorPart::package}, 1, claims), "");
    EXPECT_EQ(map.text_of(claims[0]), "cpus 0-3,8-11 (package 0)");
    claims.clear();
    EXPECT_EQ(map.claim({.bind = ProcessorPart::machine}, 1, claims), "");
    EXPECT_EQ(map.text_of(claims[0]), "cpus 0-15 (package 0-1)");
}

TEST(ProcessorPlacement, TextIsParsedBack) {
    const ProcessorPlacement all{
        ProcessorPart::numa, 2, ProcessorPart::package, 3, ProcessorPart::core, true, 4, true, {0, 1, 2, 9}, {{1}, {2, 3}}};
    ProcessorPlacement parsed;
    EXPECT_TRUE(ProcessorPlacement::parse(all.text(), parsed));
    EXPECT_EQ(parsed, all);
    EXPECT_EQ(ProcessorPlacement().text(), "");
    const ProcessorPlacement many{.map = ProcessorPart::package, .per_part = control::kMaxProcesses};
    EXPECT_TRUE(ProcessorPlacement::parse(many.text(), parsed = {}));
    EXPECT_EQ(parsed, many);
    for (const char* bad : {"bind", "bind=moon", "elements=0", "elements=99999", "cpus=", "cpus=3-1", "lists=1//2", "cpus=1-x",
                            "per-part=1000001", "bind-count=1025"})
        EXPECT_FALSE(ProcessorPlacement::parse(bad, parsed)) << bad;
}

}  // namespace
}  // namespace starling::launch
