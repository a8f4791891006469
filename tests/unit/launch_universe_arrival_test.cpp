// A rank that dies in MPI_Init: parents on other hosts wait for all ranks of a spawned job, so the job must end even if it recovers.
#include <gtest/gtest.h>

#include "base/error.h"
#include "job/job_segment.h"
#include "launch/common/event_loop.h"
#include "launch/common/order.h"
#include "launch/process/launcher.h"
#include "launch/universe/host_agent.h"

namespace starling::launch {
namespace {

job::JobDescription two_here(const std::string& blob) {
    job::JobDescription job;
    job.draw();
    job.size = job.universe_size = 2;
    job.several_hosts = true;
    job.recovers = true;
    job.command = "sh";
    job.blob = blob;
    job.hosts.resize(1);
    job.placements.push_back({0, 1, 2, 0, 0});
    return job;
}

/// Starts a job on one of several hosts, of which rank 1 is killed before MPI_Init. Returns the report that the root gets.
FailureReport report_of_death(const std::string& blob) {
    // The orphan reaper renames itself by overwriting the memory from argv[0] on, so argv[0] is a long array here.
    static char name[8192] = "launcher";
    char* argv[] = {name, nullptr};
    EventLoop loop;
    LauncherSettings settings;
    settings.argv = argv;
    settings.quiet = true;
    Launcher launcher(loop, settings);
    FailureReport report;
    const auto on_order = [&](uint32_t, const std::string& payload, bool) {
        HostOrder order;
        ASSERT_TRUE(decode(payload, order));
        if (order.kind != OrderKind::failed) return;
        EXPECT_TRUE(decode(order.bytes, report));
        loop.stop(0);
    };
    HostAgent agent(launcher, 1, on_order, [](const HostOrder&, std::string_view, const HostSet&, bool) {});
    EXPECT_TRUE(launcher.prepare()) << failure_text();
    JobPart part;
    part.description = two_here(blob);
    part.my_host = 0;
    part.tree_hosts = {1};
    JobSpec spec;
    spec.recovers = true;
    spec.programs.resize(1);
    spec.programs[0].argv = {"sh", "-c", "test $STARLING_RANK = 0 && exec sleep 60; kill -9 $$"};
    spec.programs[0].count = 2;
    const StartOutcome outcome = launcher.start_part(spec, part);
    EXPECT_EQ(outcome.error_class, 0) << outcome.text;
    loop.after(std::chrono::seconds(60), [&loop] { loop.stop(1); });
    EXPECT_EQ(launcher.run(), 0);
    agent.end_everything();
    return report;
}

TEST(SpawnedJob, ADeathBeforeTheArrivalIsReportedAsTheEndOfTheJob) {
    const FailureReport report = report_of_death("the parents");
    EXPECT_EQ(report.rank, 1u);
    EXPECT_TRUE(report.aborted);
}

TEST(SpawnedJob, ADeathBeforeMpiInitDoesNotEndARecoveringJobWithoutParents) {
    const FailureReport report = report_of_death("");
    EXPECT_EQ(report.rank, 1u);
    EXPECT_FALSE(report.aborted);
}

}  // namespace
}  // namespace starling::launch
