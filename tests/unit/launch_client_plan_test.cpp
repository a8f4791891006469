// Plan files, plans as messages, and a rank's use of its part.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

#include "launch/client/options.h"
#include "launch/client/plan_file.h"
#include "plan/file_plan.h"

namespace starling::launch {
namespace {

constexpr char kGood[] = R"({
  "starling_plan": 1, "application": "mesh", "size": 4, "from": ["run.jsonl.gz"], "max_direct": 2, "max_connections": 8,
  "phases": [
    {"name": "step", "from": 1, "to": 3, "peers": {"0": [[3, 12], [1, 930]], "1": [[0, 930]]}},
    {"name": "step", "from": 4, "to": null, "peers": {"0": [[2, 5]]}},
    {"name": "regrid", "from": 2, "to": 2, "peers": {}}],
  "collectives": [{"kind": "allreduce", "size": "<=64", "processes": 4, "algorithm": "ring", "seconds": [2e-6, 1e-6]},
                  {"kind": "bcast", "size": ">256K", "processes": 2, "algorithm": "chain"}],
  "placement": [[0, 1]], "something new": {}
})";

std::string changed(const std::string& what, const std::string& by) {
    std::string text = kGood;
    text.replace(text.find(what), what.size(), by);
    return text;
}

std::string wrong(const std::string& text) {
    Plan plan;
    return parse_plan(text, plan);
}

TEST(PlanFile, IsRead) {
    Plan plan;
    ASSERT_EQ(parse_plan(kGood, plan), "");
    EXPECT_EQ(plan.application, "mesh");
    EXPECT_EQ(plan.limits, (control::PlanLimits{2, 8, control::PlanLimits::kNone}));
    ASSERT_EQ(plan.phases.size(), 3u);
    EXPECT_EQ(plan.phases[0].peers.at(0), (std::vector<control::PlannedPeer>{{1, 930}, {3, 12}}));  // highest priority first
    EXPECT_EQ(plan.phases[1].to, control::kForever);
    EXPECT_EQ(plan.part_of(2).phases[0].peers.size(), 0u);
    EXPECT_EQ(plan.collectives, "allreduce/<=64/4=ring;bcast/>256K/2=chain");
    EXPECT_EQ(plan.part_of(1).phases[0], (control::PlannedPhase{"step", 1, 3, {{0, 930}}}));
}

TEST(PlanFile, ReportsErrorsWithTheirPlace) {
    EXPECT_NE(wrong("{\n  \"starling_plan\": }").find("it is not JSON: parse error at line 2"), std::string::npos);
    EXPECT_EQ(wrong("[1]"), "it is not an object");
    EXPECT_EQ(wrong("{}"), "it is not a plan of Starling: it has no \"starling_plan\"");
    EXPECT_EQ(wrong(changed("\"starling_plan\": 1", "\"starling_plan\": 2")),
              "it has version 2, and this Starling reads version 1");
    EXPECT_EQ(wrong(changed("\"size\": 4", "\"size\": -4")), "\"size\" is not a whole number from 1 to 1000000");
    EXPECT_EQ(wrong(changed("\"size\": 4,", "")), "it has no \"size\"");
    EXPECT_EQ(wrong(changed("\"max_direct\": 2", "\"max_direct\": \"two\"")),
              "\"max_direct\" is not a whole number from 0 to 2147483647");
    EXPECT_EQ(wrong(changed("\"from\": 2", "\"from\": 0")),
              "phase 3 (\"regrid\") \"from\" is not a whole number from 1 to 4294967295");
    EXPECT_EQ(wrong(changed("\"from\": 4", "\"from\": 3")), "phase \"step\" has occurrence 3 in two entries");
    EXPECT_EQ(wrong(changed("\"allreduce\"", "\"alldance\"")),
              "collective 1 \"kind\" is \"alldance\", which is not a collective operation");
    EXPECT_EQ(wrong(changed("\">256K\"", "256")), "collective 2 \"size\" is not one of <=64, <=1K, <=16K, <=256K and >256K");
    EXPECT_EQ(wrong(changed("\"processes\": 2", "\"processes\": 1")),
              "collective 2 \"processes\" is not a whole number from 2 to 1000000");
    EXPECT_EQ(wrong(changed("\"chain\"", "\"a;b\"")),
              "collective 2 \"algorithm\" is not a word of 1 to 64 lower-case letters, digits and underscores");
    EXPECT_EQ(wrong(changed("\"bcast\", \"size\": \">256K\", \"processes\": 2",
                            "\"allreduce\", \"size\": \"<=64\", \"processes\": 4")),
              "collective 2 occurs twice: allreduce/<=64/4");
    EXPECT_EQ(wrong(changed("\"to\": 3", "\"to\": 0")), "phase 1 (\"step\") \"to\" is not a whole number from 1 to 4294967295");
    EXPECT_EQ(wrong(changed("\"1\": [[0", "\"4\": [[0")), "phase 1 (\"step\") \"peers\" names \"4\", which is not a rank of 4");
    EXPECT_EQ(wrong(changed("[3, 12]", "[4, 12]")),
              "a peer of phase 1 (\"step\"), peers of rank 0 is not a whole number from 0 to 3");
    EXPECT_EQ(wrong(changed("[3, 12]", "[3, 0]")),
              "a priority of phase 1 (\"step\"), peers of rank 0 is not a whole number from 1 to 4294967295");
    EXPECT_EQ(wrong(changed("[3, 12]", "[1, 12]")), "phase 1 (\"step\"), peers of rank 0 has a peer twice");
    EXPECT_EQ(wrong(changed("[3, 12]", "[0, 12]")), "phase 1 (\"step\"), peers of rank 0 has the rank itself among its peers");
    EXPECT_EQ(wrong(changed("[3, 12]", "3")), "phase 1 (\"step\"), peers of rank 0 is not a list of pairs [rank, priority]");
    EXPECT_EQ(wrong(changed("\"name\": \"regrid\"", "\"name\": 7")),
              "phase 3 \"name\" is not a string of at most 1000 characters");
}

class File {
  public:
    explicit File(const std::string& text) {
        close(mkstemp(path));
        FILE* const file = std::fopen(path, "w");
        std::fputs(text.c_str(), file);
        std::fclose(file);
    }
    ~File() { std::remove(path); }
    char path[32] = "/tmp/plan_test.XXXXXX";
};

std::string parse(std::vector<std::string> arguments, Options& options) { return parse_options(arguments, options); }

TEST(PlanFile, IsCheckedAgainstTheJob) {
    const File file(kGood);
    Options options;
    ASSERT_EQ(parse({"--plan", file.path, "-n", "1", "./bin/mesh", "-x", ":", "-n", "3", "b"}, options), "");
    ASSERT_TRUE(options.plan);
    EXPECT_EQ(options.plan->size, 4u);
    EXPECT_EQ(options.programs[1].environment[0], (std::pair<std::string, std::string>{"STARLING_PLAN", "file"}));
    EXPECT_EQ(options.programs[1].environment[1].second, "allreduce/<=64/4=ring;bcast/>256K/2=chain");
    const std::string is_for = "the plan " + std::string(file.path) + " is for 4 processes of mesh, and ";
    Options other;
    EXPECT_EQ(parse({"--plan", file.path, "-n", "8", "mesh"}, other),
              is_for + "these are 8: `starling profile plan --size 8` creates one for that number");
    EXPECT_EQ(parse({"--plan", file.path, "-n", "4", "mush"}, other = {}), is_for + "this is mush");
    EXPECT_EQ(parse({"--plan", "/nowhere/plan", "-n", "4", "mesh"}, other = {}),
              "the plan /nowhere/plan can't be read: No such file or directory");
    const File broken("{");
    EXPECT_EQ(
        parse({"--plan", broken.path, "mesh"}, other = {}).find("the plan " + std::string(broken.path) + ": it is not JSON"),
        0u);
}

// A variable that is set explicitly for the processes is applied later, and takes precedence.
TEST(PlanFile, AnExplicitVariableWins) {
    const File file(kGood);
    Options options;
    ASSERT_EQ(parse({"-x", "STARLING_PLAN=learn", "--plan", file.path, "-n", "4", "mesh"}, options), "");
    EXPECT_EQ(options.programs[0].environment.back().second, "learn");
}

TEST(FilePlan, FindsTheOccurrence) {
    Plan plan;
    ASSERT_EQ(parse_plan(kGood, plan), "");
    const plan::GivenPhases phases(77, plan.part_of(0));
    ASSERT_TRUE(phases.find("step", 3));
    EXPECT_EQ(*phases.find("step", 3), (plan::Partners{{77, 1, 930}, {77, 3, 12}}));
    EXPECT_EQ(*phases.find("step", 4), (plan::Partners{{77, 2, 5}}));
    EXPECT_EQ(*phases.find("step", 4000), (plan::Partners{{77, 2, 5}}));
    EXPECT_EQ(phases.find("regrid", 1), nullptr);
    EXPECT_EQ(phases.find("regrid", 3), nullptr);
    EXPECT_TRUE(phases.find("regrid", 2)->empty());
    EXPECT_EQ(phases.find("else", 1), nullptr);
}

TEST(FilePlan, KnowsTheNextPhase) {
    Plan plan;
    ASSERT_EQ(parse_plan(changed("\"peers\": {}", "\"peers\": {\"0\": [[2, 1]]}"), plan), "");
    const plan::GivenPhases phases(77, plan.part_of(0));
    EXPECT_EQ(*phases.after("step", 1), (plan::Partners{{77, 2, 1}}));
    EXPECT_EQ(phases.after("regrid", 2), nullptr);
    EXPECT_EQ(phases.after("else", 1), nullptr);
}

}  // namespace
}  // namespace starling::launch
