// The helper thread runs jobs in order, and its end of a job wakes the process in each waiting mode.
#include "file/helper.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "message_team.h"
#include "progress/engine.h"

namespace starling::file {
namespace {

using message::test::Node;
using message::test::Placement;
using message::test::Settings;
using message::test::Team;

struct NumberedJob : HelperJob {
    int number = 0;
    unsigned delay_us = 0;
    std::vector<int>* order = nullptr;
    pid_t thread = 0;
};

Moved run_numbered(HelperJob& job) {
    auto& mine = static_cast<NumberedJob&>(job);
    usleep(mine.delay_us);
    mine.order->push_back(mine.number);
    mine.thread = gettid();
    return {mine.number, 0};
}

/// Runs jobs one by one, each of which lasts longer than a wait spins. Sleeps that the thread does not end last 100 ms each, and on a busy
/// machine others may: so one short wait is enough.
void run_ten_alone() {
    std::vector<int> order;
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < 10; ++i) {
        NumberedJob job;
        job.delay_us = 10'000;
        job.order = &order;
        job.work = run_numbered;
        const uint64_t began = now_ns();
        start(job);
        progress::wait(job);
        shortest = std::min(shortest, now_ns() - began);
    }
    EXPECT_LT(shortest, 80'000'000u);
}

/// Runs five jobs that are handed over together.
void run_five(Node&) {
    std::vector<int> order;
    NumberedJob jobs[5];
    for (int i = 0; i < 5; ++i) {
        jobs[i].number = i;
        jobs[i].delay_us = 100;
        jobs[i].order = &order;
        jobs[i].work = run_numbered;
        start(jobs[i]);
    }
    for (NumberedJob& job : jobs) progress::wait(job);
    EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
    for (const NumberedJob& job : jobs) {
        EXPECT_EQ(job.moved.bytes, job.number);
        EXPECT_NE(job.thread, gettid());
    }
    run_ten_alone();
}

class FileHelper : public ::testing::TestWithParam<const char*> {};

TEST_P(FileHelper, WakesASleepingProcess) {
    Team team({0, 0});
    team.start({{"STARLING_WAIT", GetParam()}}, run_five);
    team.expect_success();
}

TEST_P(FileHelper, WakesAProcessThatSleepsOnSockets) {
    Team team(Placement{{0, 0}, {0, 1}});
    team.start({{"STARLING_WAIT", GetParam()}}, run_five);
    team.expect_success();
}

INSTANTIATE_TEST_SUITE_P(Modes, FileHelper, ::testing::Values("poll", "adaptive", "thread"));

// stop() ends the thread after its last job; the next job starts another one.
TEST(FileHelperThread, EndsWithTheLibrarysThreadsAndStartsAgain) {
    Team team({0});
    team.start({}, [](Node& node) {
        std::vector<int> order;
        NumberedJob job;
        job.order = &order;
        job.delay_us = 20'000;
        job.work = run_numbered;
        start(job);
        progress::stop();
        EXPECT_TRUE(job.done);
        progress::start();
        run_five(node);
    });
    team.expect_success();
}

// A child of fork() has no helper thread, so its job runs at once.
TEST(FileHelperThread, IsNotNeededByAChild) {
    Team team({0});
    team.start({}, [](Node& node) {
        run_five(node);
        const pid_t child = fork();
        if (child == 0) {
            std::vector<int> order;
            NumberedJob job;
            job.order = &order;
            job.work = run_numbered;
            start(job);
            _exit(job.done && job.thread == getpid() ? 0 : 1);
        }
        int status = 1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        run_five(node);
    });
    team.expect_success();
}

}  // namespace
}  // namespace starling::file
