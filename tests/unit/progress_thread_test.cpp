// The end of a program's blocking wait wakes the progress thread, which then polls in its place.
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>

#include "datatype/datatype.h"
#include "link/peer.h"
#include "message/send.h"
#include "message_team.h"
#include "progress/engine.h"

namespace starling::message::test {
namespace {

/// Returns how often the end of a wait rings the process's own doorbell, which wakes the progress thread.
uint32_t rings_by_a_wait() {
    job::Doorbell& bell = shm::SegmentRegion(link::self().job->segment().region(link::self().rank)).doorbell();
    const uint32_t before = bell.rings.load();
    int turns = 0;
    progress::wait_until([&] { return ++turns > 2; });
    return bell.rings.load() - before;
}

// A peer that frees space rings no doorbell, and while the program waits the progress thread sleeps for 100 ms. So the end of the wait must
// wake it.
TEST(ProgressThread, IsWokenAfterAWaitIfSendsWaitForRoom) {
    Team team({0, 0});
    team.start({{"STARLING_WAIT", "thread"}}, [](Node& node) {
        node.meet(0, 2);
        // Rank 1 holds the library's lock, so that its progress thread polls nothing.
        while (node.rank == 1 && node.board.stage.load() == 0) usleep(100);
        if (node.rank == 1) return;
        EXPECT_EQ(rings_by_a_wait(), 0u);
        std::deque<SendRequest> sends;
        const char byte = 0;
        while (!link::waits_for_local_room() && sends.size() < 1'000'000)
            start_send(sends.emplace_back(), *node.channel, &byte, 1, datatype::predefined(MPI_BYTE), 1, 0, SendMode::standard);
        EXPECT_EQ(rings_by_a_wait(), 1u);
        node.board.stage.store(1);
        _exit(::testing::Test::HasFailure() ? 1 : 0);  // exits without finalizing, because the sends cannot complete
    });
    team.expect_success();
}

}  // namespace
}  // namespace starling::message::test
