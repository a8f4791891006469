// A death that becomes known while its waiter is awake.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "job/doorbell.h"
#include "message/send.h"
#include "message_team.h"
#include "progress/idle.h"

namespace starling::message::test {
namespace {

/// What the launcher does.
void mark_failed(uint32_t rank) {
    job::JobSegment& segment = link::self().job->segment();
    segment.header().recovers = 1;
    segment.port(rank).store(job::PortWord{0, job::PortWord::failed}.word());
    segment.header().failures.fetch_add(1);
    job::ring(shm::Region(segment.region(link::self().rank)).doorbell());
}

// The bell was rung before the waiter announced its sleep.
TEST(Deaths, ARingThatFindsTheWaiterAwakeIsNotSleptOver) {
    Team team({0, 0});
    team.start({{"STARLING_SPIN_US", "0"}}, [](Node& node) {
        if (node.rank == 1) return;
        progress::look_at_liveness_now_and_then(now_ns());  // the clock alone would not have it look again before it sleeps
        mark_failed(1);
        const uint64_t before = counters.sleeps;
        progress::wait_until([&] { return node.peer(1).dead; });
        EXPECT_EQ(counters.sleeps, before);
    });
    team.expect_success();
}

}  // namespace
}  // namespace starling::message::test
