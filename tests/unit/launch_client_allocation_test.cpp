// Descriptions of an allocation: Slurm's in environment variables, Flux's in JSON.
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/config.h"
#include "launch/client/allocation.h"

namespace starling::launch {
namespace {

using Names = std::vector<std::string>;
using Counts = std::vector<uint32_t>;

Names hosts(const char* list) {
    Names out;
    return expand_hosts(list, out) ? out : Names{"refused"};
}

Counts counts(const char* list) {
    Counts out;
    return expand_counts(list, out) ? out : Counts{};
}

TEST(Allocation, HostLists) {
    EXPECT_EQ(hosts("login"), (Names{"login"}));
    EXPECT_EQ(hosts("n1,n3"), (Names{"n1", "n3"}));
    EXPECT_EQ(hosts("n[1-3,7]"), (Names{"n1", "n2", "n3", "n7"}));
    EXPECT_EQ(hosts("n[08-11]-ib,x"), (Names{"n08-ib", "n09-ib", "n10-ib", "n11-ib", "x"})) << "zeros stay";
    EXPECT_EQ(hosts("r[1-2]n[1-2]"), (Names{"r1n1", "r1n2", "r2n1", "r2n2"}));
    for (const char* list : {"", ",", "a,", "n[", "n[]", "n[1", "n[1-", "n[3-1]", "n[x]", "n[1-999999999]", "n[1,]"})
        EXPECT_EQ(hosts(list), Names{"refused"}) << list;
}

TEST(Allocation, Counts) {
    EXPECT_EQ(counts("4"), (Counts{4}));
    EXPECT_EQ(counts("4(x2),1"), (Counts{4, 4, 1}));
    for (const char* list : {"", "x", "4(2)", "4(x)", "4(x2", "4,", "1(x999999999)"}) EXPECT_TRUE(counts(list).empty()) << list;
}

class InSlurm : public testing::Test {
  protected:
    void SetUp() override { TearDown(); }
    void TearDown() override {
        for (const char* name :
             {"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_NTASKS", "SLURM_NPROCS",
              "SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE", "PBS_JOBID", "PBS_NODEFILE", "LSB_JOBID", "LSB_MCPU_HOSTS",
              "LSB_HOSTS", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE", "COBALT_JOBID", "COBALT_NODEFILE", "FLUX_URI"})
            unsetenv(name);
    }
    static Options options() {
        Options out;
        out.programs.emplace_back();
        return out;
    }
};

TEST_F(InSlurm, WithoutAnAllocationNothingChanges) {
    Options given = options();
    EXPECT_EQ(use_allocation(given), "");
    EXPECT_TRUE(given.programs[0].hosts.empty());
    EXPECT_TRUE(given.agent.empty());
}

TEST_F(InSlurm, ItsHostsAreUsedThroughSrun) {
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_JOB_NODELIST", "starling-test-[1-2]", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", "8,4", 1);
    Options given = options();
    EXPECT_EQ(use_allocation(given), "");
    EXPECT_EQ(given.programs[0].hosts, (std::vector<HostSlots>{{"starling-test-1", 8}, {"starling-test-2", 4}}));
    EXPECT_NE(given.agent.find("--jobid=12"), std::string::npos);
    EXPECT_TRUE(config().keep_agent);
    setenv("SLURM_NTASKS", "3", 1);
    setenv("SLURM_TASKS_PER_NODE", "2,1", 1);
    given = options();
    use_allocation(given);
    EXPECT_EQ(given.programs[0].hosts[1].slots, 1u) << "the number of requested tasks per host takes precedence";
}

TEST_F(InSlurm, TheUsersOptionsTakePrecedence) {
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_JOB_NODELIST", "starling-test-[1-2]", 1);
    Options given = options();
    given.programs[0].hosts = {{"other", 1}};
    EXPECT_EQ(use_allocation(given), "");
    EXPECT_EQ(given.programs[0].hosts.size(), 1u);
    given = options();
    given.agent = "mine";
    use_allocation(given);
    EXPECT_EQ(given.agent, "mine");
    EXPECT_EQ(given.programs[0].hosts.size(), 2u);
}

TEST_F(InSlurm, TheCountsOfAStepOnOtherHostsAreNotUsed) {
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_JOB_NODELIST", "starling-test-[1-2]", 1);
    setenv("SLURM_NTASKS", "1", 1);
    setenv("SLURM_TASKS_PER_NODE", "1", 1);
    setenv("SLURM_JOB_CPUS_PER_NODE", "8(x2)", 1);
    EXPECT_EQ(slurm_allocation().hosts[0].slots, 8u);
}

TEST_F(InSlurm, TheFirstManagerWins) {
    EXPECT_EQ(find_allocation().manager, "");
    setenv("LSB_HOSTS", "a a b", 1);
    EXPECT_EQ(find_allocation().manager, "LSF");
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_JOB_NODELIST", "n1", 1);
    EXPECT_EQ(find_allocation().manager, "Slurm");
}

TEST(Flux, ItsResourcesAreHostsWithCores) {
    std::vector<HostSlots> hosts;
    EXPECT_EQ(
        parse_flux_resources(R"({"execution": {"nodelist": ["f[1-2]"], "R_lite": [{"rank": "1", "children": {"core": "0-3"}},
                                       {"rank": "0", "children": {"core": "5"}}]}})",
                             hosts),
        "");
    EXPECT_EQ(hosts, (std::vector<HostSlots>{{"f1", 1}, {"f2", 4}}));
    for (const char* text : {"", "[]", R"({"execution": 1})", R"({"execution": {"nodelist": [], "R_lite": []}})",
                             R"({"execution": {"nodelist": ["a"], "R_lite": [{"rank": "0-", "children": {"core": "0"}}]}})"})
        EXPECT_NE(parse_flux_resources(text, hosts), "") << text;
}

TEST(Flux, SlotsOfBrokersOnOneHostAddUp) {
    std::vector<HostSlots> hosts;
    EXPECT_EQ(parse_flux_resources(
                  R"({"execution": {"nodelist": ["b,a,b"], "R_lite": [{"rank": "0-2", "children": {"core": "0-1"}}]}})", hosts),
              "");
    ASSERT_EQ(hosts.size(), 2u);
    EXPECT_EQ(hosts[0].name, "b");
    EXPECT_EQ(hosts[0].slots, 4u);
    EXPECT_EQ(hosts[1].name, "a");
    EXPECT_EQ(hosts[1].slots, 2u);
}

TEST_F(InSlurm, AMalformedHostListIsReported) {
    setenv("SLURM_JOB_ID", "12", 1);
    setenv("SLURM_JOB_NODELIST", "n[1-", 1);
    Options given = options();
    EXPECT_NE(use_allocation(given).find("n[1-"), std::string::npos);
}

}  // namespace
}  // namespace starling::launch
