// Traffic counters of the profile, and their split into phases.
#include <gtest/gtest.h>

#include <vector>

#include "profile/phase.h"
#include "profile/traffic.h"

namespace starling::profile {
namespace {

struct Seen {
    uint32_t rank;
    uint64_t messages, bytes, direct;
    bool operator==(const Seen&) const = default;
};

std::vector<Seen> seen() {
    std::vector<Seen> all;
    const auto visit = [](const Traffic& traffic, void* argument) {
        static_cast<std::vector<Seen>*>(argument)->push_back(
            {traffic.rank, traffic.messages(), traffic.bytes(), traffic.messages(PathKind::connection)});
    };
    each_traffic(visit, &all);
    return all;
}

// Once enabled, counting cannot be disabled, so one test covers all of it, in the order of a process's life.
TEST(ProfileTraffic, APhaseContainsTheTrafficSentInIt) {
    EXPECT_EQ(open_traffic(7, 1), nullptr) << "counting is not enabled";
    start_counting();
    Traffic *one = open_traffic(7, 1), *other = open_traffic(7, 2);
    ASSERT_TRUE(one && other);
    count(*other, Size::large, PathKind::base, 1 << 20);
    count(*one, Size::small, PathKind::base, 8);
    count(*one, Size::small, PathKind::connection, 8);
    EXPECT_EQ(seen(), (std::vector<Seen>{{2, 1, 1 << 20, 0}, {1, 2, 16, 1}}));

    EXPECT_EQ(sizes()[size_bin(8)].messages, 2u);
    EXPECT_EQ(sizes()[size_bin(1 << 20)].bytes, uint64_t{1} << 20);

    struct Change {
        PhaseId ended, begun;
        std::vector<Seen> traffic;
    };
    static std::vector<Change> changes;
    listen_to_phases([](PhaseId ended, PhaseId begun) { changes.push_back({ended, begun, seen()}); });
    EXPECT_EQ(current_phase(), 0u);
    const PhaseId first = begin_phase("first");
    ASSERT_EQ(changes.size(), 1u);
    EXPECT_EQ(changes[0].ended, 0u);
    EXPECT_EQ(changes[0].begun, first);
    EXPECT_EQ(changes[0].traffic.size(), 2u) << "a listener is given the traffic of the phase that ends";
    EXPECT_TRUE(seen().empty());
    EXPECT_EQ(sizes()[size_bin(8)].messages, 0u);

    count(*other, AccessKind::put, PathKind::connection, 8);
    count_in_memory(*other, AccessKind::get, 100);
    EXPECT_EQ(seen(), (std::vector<Seen>{{2, 1, 8, 1}})) << "traffic without packets needs no connection";
    EXPECT_EQ(other->in_memory[1].bytes, 100u);
    begin_phase("accesses");
    EXPECT_TRUE(seen().empty());
    EXPECT_EQ(other->in_memory[1].bytes, 0u);

    count(*one, Size::pool, PathKind::connection, 4096);
    close_traffic(one);
    EXPECT_EQ(seen(), (std::vector<Seen>{{1, 1, 4096, 1}})) << "the messages of a forgotten peer still count";
    const PhaseId second = begin_phase("second");
    EXPECT_EQ(changes[2].traffic.size(), 1u);
    EXPECT_EQ(begin_phase("first"), first) << "equal names are one phase";
    EXPECT_EQ(begin_phase("first"), first);
    EXPECT_NE(first, second);
    EXPECT_EQ(phase(first).occurrences, 3u);
    EXPECT_EQ(phases(), 4u);
    close_traffic(other);
}

TEST(ProfileTraffic, BinsHaveMessagesAboveHalfTheirSize) {
    for (const uint64_t bytes : {0, 1, 2, 3, 4, 5, 8, 9, 1023, 1024, 1025}) {
        const size_t bin = size_bin(bytes);
        EXPECT_LE(bytes, size_of_bin(bin));
        EXPECT_TRUE(bin <= 1 || bytes > size_of_bin(bin) / 2) << bytes;
    }
    EXPECT_EQ(size_bin(~uint64_t{0}), kSizeBins - 1);
}

}  // namespace
}  // namespace starling::profile
