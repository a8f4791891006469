// Whether a wait in the shared-memory stage on a crowded core yields at once, or first polls for participants on other cores.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "collective/shm/operation_step.h"

namespace starling::collective {
namespace {

/// Asks for participant 0 of a wait among four. Participants in `here` are on its core, those in `written` have written, and those in
/// `finished` have finished the operations before.
bool needs_yield(const NodeWait& wait, const std::set<int>& here, const std::set<int>& written,
                 const std::set<int>& finished = {}) {
    return wait.needs_yield(
        0, 4, [&](int i) { return here.contains(i); }, [&](int i) { return written.contains(i); },
        [&](int i) { return finished.contains(i); });
}

constexpr NodeWait kMeeting{NodeWait::Who::writers, 7, 0, 4};

TEST(NodeWait, YieldsForAMissingWriterOnItsOwnCore) {
    EXPECT_TRUE(needs_yield(kMeeting, {0, 2}, {0}));
    EXPECT_TRUE(needs_yield(kMeeting, {0, 2}, {0, 1, 3})) << "participant 2 cannot write before a yield";
}

TEST(NodeWait, PollsIfAllMissingWritersAreOnOtherCores) {
    EXPECT_FALSE(needs_yield(kMeeting, {0, 2}, {0, 2})) << "a yield would let a waiting process run";
    EXPECT_FALSE(needs_yield(kMeeting, {0}, {0}));
    EXPECT_FALSE(needs_yield(kMeeting, {0}, {})) << "a process does not wait for itself";
    EXPECT_FALSE(needs_yield({NodeWait::Who::writers, 7, 1, 2}, {0, 2}, {})) << "participant 2 is not awaited";
}

TEST(NodeWait, PollsForARootOnAnotherCoreUnlessAParticipantHereHasWork) {
    constexpr NodeWait kFromTwo{NodeWait::Who::root, 7, 2};
    EXPECT_TRUE(needs_yield(kFromTwo, {0, 2}, {}, {1, 2, 3})) << "the root cannot write before a yield";
    EXPECT_TRUE(needs_yield(kFromTwo, {0, 1}, {}, {2, 3})) << "participant 1 can finish earlier operations";
    EXPECT_FALSE(needs_yield(kFromTwo, {0, 1}, {}, {1})) << "a yield would let another waiting process run";
    EXPECT_FALSE(needs_yield(kFromTwo, {0}, {}, {}));
}

TEST(NodeWait, YieldsForReadersAndForCountedArrivals) {
    EXPECT_TRUE(needs_yield({NodeWait::Who::readers, 7, 0, 4}, {0}, {}));
    EXPECT_TRUE(needs_yield({NodeWait::Who::everyone, 7}, {0}, {}));
}

TEST(NodeWait, FollowsTheEdgesOfANeighborhood) {
    std::vector<comm::NeighborEdge> edges(2);
    edges[0].rank = 3;
    edges[1].rank = 2;
    const NodeWait wait{NodeWait::Who::writers, 7, 0, 2, edges.data()};
    EXPECT_TRUE(needs_yield(wait, {0, 2}, {3}));
    EXPECT_FALSE(needs_yield(wait, {0, 1}, {}));
    EXPECT_FALSE(needs_yield(wait, {0, 2}, {2}));
}

}  // namespace
}  // namespace starling::collective
