// A peer's death that is reported while the waiting process is awake.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

#include "base/clock.h"
#include "job/doorbell.h"
#include "message/send.h"
#include "message_team.h"
#include "progress/blocking_wait.h"

namespace starling::message::test {
namespace {

/// Marks a rank as failed, as the launcher does.
void mark_failed(uint32_t rank) {
    job::JobSegment& segment = link::self().job->segment();
    segment.header().recovers = 1;
    segment.port(rank).store(job::PortWord{0, job::PortWord::failed}.word());
    segment.header().failures.fetch_add(1);
    job::ring(shm::SegmentRegion(segment.region(link::self().rank)).doorbell());
}

/// Wakes all sleepers on the own job's count of dead ranks; returns how many slept.
long wake_by_count() {
    return syscall(SYS_futex, &link::self().job->segment().header().failures, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// One futex call of the launcher wakes all ranks of the host.
TEST(Deaths, SleepersInARecoveringJobAreWokenByTheCountOfDeadRanks) {
    if (syscall(SYS_futex_waitv, nullptr, 0, 0, nullptr, 0) < 0 && errno == ENOSYS) GTEST_SKIP() << "Linux before 5.16";
    Team team({0, 0, 0, 0});
    team.start({{"STARLING_SPIN_US", "0"}}, [](Node& node) {
        job::JobSegment& segment = link::self().job->segment();
        segment.header().recovers = 1;
        node.meet(0, 4);
        if (node.rank == 3) return;
        if (node.rank != 2) return progress::wait_until([&] { return node.peer(3).dead; });
        // Before the death, wake_by_count() only wakes ranks that sleep again.
        const uint64_t until = now_ns() + 200'000'000'000;
        long woken = 0;
        while ((woken = wake_by_count()) != 2 && now_ns() < until) usleep(1000);
        EXPECT_EQ(woken, 2);
        segment.port(3).store(job::PortWord{0, job::PortWord::failed}.word());
        segment.header().failures.fetch_add(1);
        wake_by_count();
    });
    team.expect_success();
}

// The launcher rings the doorbell before the waiter announces its sleep.
TEST(Deaths, ADoorbellRungWhileTheWaiterIsAwakeIsNotLost) {
    Team team({0, 0});
    team.start({{"STARLING_SPIN_US", "0"}}, [](Node& node) {
        if (node.rank == 1) return;
        // Resets the interval of liveness checks, so that only the ring can cause one before the sleep.
        progress::check_liveness_periodically(now_ns());
        mark_failed(1);
        const uint64_t before = counters.sleeps;
        progress::wait_until([&] { return node.peer(1).dead; });
        EXPECT_EQ(counters.sleeps, before);
    });
    team.expect_success();
}

}  // namespace
}  // namespace starling::message::test
