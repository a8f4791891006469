// The launcher's first action when a rank of a recovering job dies.
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"
#include "job/doorbell.h"
#include "job/job_segment.h"
#include "launch/common/event_loop.h"
#include "launch/process/launcher.h"

namespace starling::launch {
namespace {

/// Records the state of the job segment at the moment when the root is notified.
class Root final : public Controller {
  public:
    explicit Root(Launcher& launcher) : launcher_(launcher) {}
    void failed(LocalJob& job, const RankFailure& failure) override {
        EXPECT_EQ(failure.rank, 1u);
        expect_marked_once(job);
        job::Doorbell& bell = *reinterpret_cast<job::Doorbell*>(job.segment.region(0));
        const job::RankState before = job.segment.cell(0).state.exchange(job::RankState::initialized);
        bell.sleeping.store(job::kOnFutex);
        launcher_.mark_failed(job, {1});  // marks the rank as failed, as the root orders it
        expect_marked_once(job);
        EXPECT_EQ(bell.rings.load(), 1u);
        job.segment.cell(0).state.store(before);
        told = true;
    }
    void absent(LocalJob&, uint32_t, const std::string&) override { ADD_FAILURE() << "rank 1 was killed"; }
    void on_all_ended(LocalJob&) override { launcher_.loop().stop(0); }
    bool forward_request(LocalJob&, uint32_t, control::MessageKind, const std::string&, ReplyCallback) override {
        return false;
    }

    bool told = false;

  private:
    static void expect_marked_once(const LocalJob& job) {
        EXPECT_EQ(job::PortWord::of(job.segment.port(1).load()).state, job::PortWord::failed);
        EXPECT_EQ(job::PortWord::of(job.segment.port(0).load()).state, job::PortWord::unknown);
        EXPECT_EQ(job.segment.header().failures.load(), 1u);
    }
    Launcher& launcher_;
};

job::JobDescription two_here() {
    job::JobDescription job;
    job.draw();
    job.size = job.universe_size = 2;
    job.recovers = true;
    job.command = "sh";
    job.hosts.resize(1);
    job.placements.push_back({0, 1, 2, 0, 0});
    return job;
}

TEST(LauncherDeaths, WaitingRanksAreNotifiedOfADeathBeforeTheRoot) {
    // The orphan reaper renames itself by overwriting the memory from argv[0] on, so argv[0] is a long array here.
    static char name[8192] = "launcher";
    char* argv[] = {name, nullptr};
    EventLoop loop;
    LauncherSettings settings;
    settings.argv = argv;
    settings.quiet = true;
    Launcher launcher(loop, settings);
    Root root(launcher);
    launcher.set_superior(&root);
    ASSERT_TRUE(launcher.prepare()) << failure_text();
    JobPart part;
    part.description = two_here();
    part.my_host = 0;
    JobSpec spec;
    spec.recovers = true;
    spec.programs.resize(1);
    spec.programs[0].argv = {"sh", "-c", "test $STARLING_RANK = 0 || kill -9 $$"};
    spec.programs[0].count = 2;
    const StartOutcome outcome = launcher.start_part(spec, part);
    ASSERT_EQ(outcome.error_class, 0) << outcome.text;
    loop.after(std::chrono::seconds(60), [&loop] { loop.stop(1); });
    EXPECT_EQ(launcher.run(), 0);
    EXPECT_TRUE(root.told);
    launcher.release_part(launcher.jobs().front(), job::JobState::ended);
}

}  // namespace
}  // namespace starling::launch
