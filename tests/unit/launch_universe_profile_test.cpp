// The lines of a profile file.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "launch/universe/profile_lines.h"

namespace starling::launch {
namespace {

using control::ProfileReport;
using Json = nlohmann::json;

std::vector<Json> parsed(const std::string& lines) {
    std::vector<Json> all;
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);) all.push_back(Json::parse(line));
    return all;
}

job::JobDescription a_job(job::JobId id, uint32_t size) {
    job::JobDescription job;
    job.id = id;
    job.size = size;
    job.hosts.resize(1);
    job.placements = {{0, 1, size, 0, 0}};
    return job;
}

ProfileLines lines_of_nobody_else() {
    return ProfileLines([](job::JobId) -> const job::JobDescription* { return nullptr; });
}

ProfileReport with_context(uint64_t context) {
    ProfileReport report;
    report.phases.emplace_back();
    report.phases[0].collectives.push_back({"a+0x1", "barrier", "node", context, 2, 0, false, 1, 0, 1, 1});
    return report;
}

TEST(ProfileLines, AJobAndItsPlacement) {
    ProfileLines lines = lines_of_nobody_else();
    job::JobDescription job = a_job(5, 6);
    job.hosts.resize(2);
    job.placements = {{0, 2, 2, 0, 0}, {1, 2, 2, 1, 0}, {4, 1, 2, 1, 2}};
    const auto all = parsed(lines.begin(job, 0));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0]["places"], Json::parse("[[0,0,1],[1,1,1],[0,2,1],[1,3,1],[1,4,2]]"));
    EXPECT_EQ(lines.begin(job, 0), "") << "once";
}

TEST(ProfileLines, AMetJobsLinePrecedesItsUse) {
    const job::JobDescription other = a_job(9, 3);
    ProfileLines lines([&](job::JobId id) { return id == other.id ? &other : nullptr; });
    lines.begin(a_job(5, 2), 0);
    ProfileReport report;
    report.phases.emplace_back();
    report.phases[0].peers = {{9, 1, {1, 0, 0}, {8, 0, 0}, 0, 0}, {77, 2, {1, 0, 0}, {8, 0, 0}, 0, 0}};
    const auto all = parsed(lines.report(5, 1, report));
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0]["size"], 3);
    EXPECT_EQ(all[1]["size"], 0) << "of another universe";
    EXPECT_EQ(all[2]["peers"], Json::parse("[[1,1,1,8,0,0,0,0,0,0],[2,2,1,8,0,0,0,0,0,0]]"));
}

TEST(ProfileLines, CommunicatorsAreNamedAlikeInAllRuns) {
    ProfileLines lines = lines_of_nobody_else();
    const job::JobId id = 0xfffffffffffffff0;
    lines.begin(a_job(id, 2), 0);
    lines.begin(a_job(5, 2), id);
    const auto name = [&](uint64_t number, job::JobId of) {
        return parsed(lines.report(id, 0, with_context((of + number) << 4)))[0]["collectives"][0][1];
    };
    EXPECT_EQ(name(1, id), "world");
    EXPECT_EQ(name(2, id), "self");
    EXPECT_EQ(name(16, id), "c0.16");
    EXPECT_EQ(name((uint64_t{3} << 40) + 20, id), "c3.20");
}

TEST(ProfileLines, ARankWithoutALastReportHasEndedEarly) {
    ProfileLines lines = lines_of_nobody_else();
    lines.begin(a_job(5, 3), 0);
    ProfileReport last;
    last.last = true;
    EXPECT_EQ(parsed(lines.report(5, 1, last))[0]["how"], "finalized");
    EXPECT_EQ(lines.report(5, 1, last), "") << "a rank may report its end twice; the second report adds no line";
    const auto all = parsed(lines.end(5));
    ASSERT_EQ(all.size(), 2u);
    EXPECT_EQ(all[0]["rank"], 0);
    EXPECT_EQ(all[1]["rank"], 2);
    EXPECT_EQ(all[1]["how"], "ended early");
}

TEST(ProfileLines, AModuleIsWrittenOnceInFrontOfItsFirstPhase) {
    ProfileLines lines = lines_of_nobody_else();
    lines.begin(a_job(5, 3), 0);
    ProfileReport report = with_context(0);
    report.modules = {{"program", "/home/program", "ab12"}};
    const auto first = parsed(lines.report(5, 0, report)), second = parsed(lines.report(5, 1, report));
    ASSERT_EQ(first.size(), 2u);
    EXPECT_EQ(first[0],
              nlohmann::json::parse(R"({"kind":"module","name":"program","path":"/home/program","build_id":"ab12"})"));
    ASSERT_EQ(second.size(), 1u);
    EXPECT_EQ(second[0]["kind"], "phase");
}

TEST(ProfileLines, TheEndHasTheUseOfTheCores) {
    ProfileLines lines = lines_of_nobody_else();
    lines.begin(a_job(5, 1), 0);
    ProfileReport last;
    last.last = true;
    last.cores = {{{0, 1}, {4, 4}}, 3'000'000'000, 2'000'000'000, 1'000'000'000};
    EXPECT_EQ(parsed(lines.report(5, 0, last))[0]["cores"],
              nlohmann::json::parse(R"({"cpus":[[0,1],[4,4]],"cpu":3.0,"polled":2.0,"waited":1.0})"));
}

TEST(ProfileLines, UnknownJobsAreNotWritten) {
    ProfileLines lines = lines_of_nobody_else();
    lines.begin(a_job(5, 3), 0);
    EXPECT_EQ(lines.report(6, 0, with_context(0)), "");
    EXPECT_EQ(lines.report(5, 3, with_context(0)), "");
}

TEST(ProfileLines, NamesMayBeAnything) {
    ProfileLines lines = lines_of_nobody_else();
    lines.begin(a_job(5, 1), 0);
    ProfileReport report;
    report.phases.emplace_back();
    report.phases[0].name = "\xff\"\n";
    report.phases[0].mark = 200;
    const auto all = parsed(lines.report(5, 0, report));
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0]["mark"], "other");
}

}  // namespace
}  // namespace starling::launch
