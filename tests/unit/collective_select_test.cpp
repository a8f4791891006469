// The table's choice of algorithms for calls within one host and between hosts.
#include "collective/select.h"

#include <gtest/gtest.h>

namespace starling::collective {
namespace {

std::string_view chosen(CollectiveKind kind, int n, uint64_t bytes, bool own_hosts, bool turns = false) {
    CallParameters call{kind, n, bytes};
    call.network = own_hosts;
    call.turns = turns;
    return select(call).name;
}

std::string_view chosen_on_shared_hosts(CollectiveKind kind, int n, uint64_t bytes, bool turns = false) {
    CallParameters call{kind, n, bytes};
    call.two_levels = call.consecutive = true;
    call.turns = turns;
    return select(call).name;
}

// Senders that all send to one host overflow the queue of its cable, and on a cable between switches linear sends each block many times.
TEST(Select, LongDataBetweenHostsIsNotSentByEachToAll) {
    for (const int n : {3, 8, 16, 32}) {
        EXPECT_EQ(chosen(CollectiveKind::allgather, n, 1 << 20, true), "ring") << n;
        EXPECT_EQ(chosen(CollectiveKind::bcast, n, 1 << 20, true), "scatter_allgather") << n;
        EXPECT_EQ(chosen(CollectiveKind::allreduce, n, 128 << 10, true), "rabenseifner") << n;
        EXPECT_EQ(chosen(CollectiveKind::allgather, n, 1 << 20, false), "linear") << n;
        EXPECT_EQ(chosen(CollectiveKind::bcast, n, 1 << 20, false), "linear") << n;
        EXPECT_EQ(chosen(CollectiveKind::allreduce, n, 128 << 10, false), "reduce_bcast") << n;
        EXPECT_EQ(chosen_on_shared_hosts(CollectiveKind::allgather, n, 1 << 20), "ring") << n;
        EXPECT_EQ(chosen_on_shared_hosts(CollectiveKind::allgather, n, 16 << 10), "two_level") << n;
    }
}

TEST(Select, FewHostsSendShortDataAtOnce) {
    EXPECT_EQ(chosen(CollectiveKind::bcast, 4, 1 << 10, true), "linear");
    EXPECT_EQ(chosen(CollectiveKind::bcast, 5, 1 << 10, true), "binomial");
    EXPECT_EQ(chosen(CollectiveKind::allgather, 8, 16 << 10, true), "linear");
    EXPECT_EQ(chosen(CollectiveKind::allgather, 8, 8, true), "recursive_doubling");
}

// Turns reduce around a ring. Below the size from which a ring is the choice anyway, recursive halving is faster.
TEST(Select, TurnsReplaceOnlyRings) {
    for (const bool turns : {false, true})
        EXPECT_EQ(chosen(CollectiveKind::allreduce, 16, 2 << 20, true, turns), "rabenseifner");
    EXPECT_EQ(chosen(CollectiveKind::allreduce, 16, 8 << 20, true, true), "multicast_turns");
    EXPECT_EQ(chosen(CollectiveKind::allreduce, 16, 8 << 20, true, false), "ring");
    EXPECT_EQ(chosen(CollectiveKind::allgather, 16, 1 << 20, true, true), "multicast_turns");
    EXPECT_EQ(chosen_on_shared_hosts(CollectiveKind::allgather, 16, 1 << 20, true), "multicast_turns");
    EXPECT_EQ(chosen_on_shared_hosts(CollectiveKind::allreduce, 16, 8 << 20, true), "two_level");
}

}  // namespace
}  // namespace starling::collective
