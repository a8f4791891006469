// Multicast channels between real processes, each on its own simulated host, with groups on the loopback interface.
#include "multicast/channel.h"

#include <gtest/gtest.h>

#include <numeric>

#include "link/remote_peer.h"
#include "link/transports.h"
#include "message/point_to_point.h"
#include "message_team.h"

namespace starling::message::test {
namespace {

constexpr uint64_t kContexts = 0x7000;

Placement one_host_each(int processes) {
    Placement placement;
    for (int i = 0; i < processes; ++i) placement.jobs.push_back(0), placement.hosts.push_back(i);
    return placement;
}

/// One process's channel of the communicator that consists of the ranks `its_ranks`; null if the process is not a member.
struct Share {
    Share(Node& its_node, std::vector<int> its_ranks, uint64_t context, Multicast scheme = Multicast::automatic)
        : node(its_node), ranks(std::move(its_ranks)) {
        std::vector<link::Process> members;
        for (const int rank : ranks) members.push_back(node.everyone.at(rank));
        me = static_cast<uint32_t>(std::find(ranks.begin(), ranks.end(), node.rank) - ranks.begin());
        if (me < ranks.size()) channel = multicast::open(members, me, kContexts + context, scheme);
    }
    ~Share() {
        if (channel) multicast::close(*channel);
    }
    /// Waits until every member may send through the group. Meanwhile it calls call() for the messages that the tree would carry.
    void wait_until_ready() {
        node.wait_for([&] {
            call();
            return multicast::may_send(*channel, 1);
        });
    }
    /// Starts a receive of a message that the tree would carry: such calls make a group wanted.
    void call() const {
        multicast::MulticastReceive probe;
        multicast::start_receive(*channel, probe, (me + 1) % static_cast<uint32_t>(ranks.size()), 1ull << 40, nullptr, 0);
        EXPECT_TRUE(multicast::withdraw(probe));
    }
    void broadcast(uint32_t root, uint64_t call, uint64_t bytes) {
        std::vector<unsigned char> data(bytes);
        for (uint64_t i = 0; i < bytes; ++i) data[i] = static_cast<unsigned char>(i * 7 + call * 13 + root);
        if (me == root) {
            multicast::MulticastSend send;
            node.wait_for([&] { return multicast::may_send(*channel, bytes); });
            ASSERT_TRUE(multicast::start_send(*channel, send, call, data.data(), bytes));
            progress::wait(send);
            ASSERT_EQ(send.outcome.error, MPI_SUCCESS);
            return;
        }
        std::vector<unsigned char> got(bytes);
        multicast::MulticastReceive receive;
        multicast::start_receive(*channel, receive, root, call, got.data(), bytes);
        progress::wait(receive);
        ASSERT_EQ(receive.outcome.error, MPI_SUCCESS) << failure_text();
        ASSERT_EQ(receive.outcome.bytes, bytes);
        ASSERT_EQ(got, data) << "call " << call << " from " << root;
    }

    Node& node;
    const std::vector<int> ranks;
    uint32_t me = 0;
    multicast::Channel* channel = nullptr;
};

void run(Placement placement, Settings settings, const std::function<void(Node&)>& body) {
    Team team(std::move(placement));
    settings.emplace_back("STARLING_IP_INTERFACES", "lo");
    team.start(settings, [&](Node& node) {
        body(node);
        // End as MPI_Finalize does: no process ends while others still need it.
        progress::wait_until([] { return multicast::all_delivered() && link::all_acknowledged(); });
        node.barrier(7);
    });
    team.expect_success();
}

const std::vector<int> kAll{0, 1, 2, 3, 4};

TEST(MulticastChannel, DeliversMessagesFromEveryMemberWithEveryScheme) {
    for (const char* scheme : {"auto", "basic", "lazy", "pool"})
        run(one_host_each(5), {{"STARLING_MULTICAST", scheme}}, [](Node& node) {
            Share share(node, kAll, 1);
            ASSERT_NE(share.channel, nullptr);
            if (config().multicast == Multicast::basic) {
                progress::wait_until([&] { return multicast::settled(*share.channel); });
                EXPECT_TRUE(multicast::may_send(*share.channel, 1));
            }
            share.wait_until_ready();
            uint64_t call = 0;
            for (const uint64_t bytes : {0u, 1u, 1000u, 60'000u, 700'000u})
                for (uint32_t root = 0; root < 5; ++root) share.broadcast(root, ++call, bytes);
            for (int i = 0; i < 500; ++i) share.broadcast(0, ++call, 100);
            EXPECT_GT(counters.datagrams_group_received, 500u);
            EXPECT_EQ(counters.groups_ready, config().multicast == Multicast::pool ? uint64_t{counters.groups_ready} : 1u);
        });
}

TEST(MulticastChannel, IsNotCreatedIfUseless) {
    const auto none = [](Node& node) { EXPECT_EQ(Share(node, kAll, 1).channel, nullptr); };
    run(one_host_each(5), {{"STARLING_MULTICAST", "off"}}, none);
    run(one_host_each(2), {}, [](Node& node) { EXPECT_EQ(Share(node, {0, 1}, 1).channel, nullptr); });
    run(one_host_each(5), {}, [](Node& node) { EXPECT_EQ(Share(node, kAll, 1, Multicast::off).channel, nullptr); });
}

TEST(MulticastChannel, AnInvalidAddressRangeLeavesCollectivesOnMessages) {
    for (const char* range : {"10.0.0.0/8", "239.1", "nonsense", "239.0.0.0/33", "224.0.0.0/8"})
        run(one_host_each(3), {{"STARLING_MULTICAST", "basic"}, {"STARLING_MULTICAST_RANGE", range}}, [](Node& node) {
            Share share(node, {0, 1, 2}, 1);
            ASSERT_NE(share.channel, nullptr);
            progress::wait_until([&] { return multicast::settled(*share.channel); });
            EXPECT_FALSE(multicast::may_send(*share.channel, 1));
            uint64_t value = 1;
            multicast::MulticastSend send;
            EXPECT_FALSE(multicast::start_send(*share.channel, send, 1, &value, sizeof value));
        });
}

// Communicators of the same processes, in any order, share a group; messages of one never arrive on another.
TEST(MulticastChannel, CommunicatorsOfTheSameProcessesShareAGroup) {
    run(one_host_each(5), {{"STARLING_MULTICAST", "lazy"}}, [](Node& node) {
        Share first(node, kAll, 1), second(node, {4, 2, 0, 1, 3}, 2);
        first.wait_until_ready();
        for (uint64_t call = 1; call <= 50; ++call) {
            first.broadcast(call % 5, call, 300);
            second.broadcast(call % 5, call, 200);
        }
        EXPECT_EQ(counters.groups_joined, 1u);
    });
}

TEST(MulticastChannel, AThousandCommunicatorsAreCreatedAndFreed) {
    run(one_host_each(4), {{"STARLING_MULTICAST", "lazy"}}, [](Node& node) {
        Share world(node, {0, 1, 2, 3}, 0);
        world.wait_until_ready();
        for (uint64_t i = 1; i <= 1000; ++i) {
            Share share(node, {0, 1, 2, 3}, i);
            share.broadcast(static_cast<uint32_t>(i % 4), 1, 64);
        }
        EXPECT_EQ(counters.groups_joined, 1u);
        EXPECT_EQ(counters.groups, 1u);
        EXPECT_EQ(counters.groups_usable, 1u);
    });
}

// Only one group may exist at a time. It belongs to the communicator that is used more.
TEST(MulticastChannel, AGroupIsReplacedByOneThatIsUsedMore) {
    run(one_host_each(4), {{"STARLING_MULTICAST", "lazy"}, {"STARLING_MULTICAST_GROUPS", "1"}}, [](Node& node) {
        Share first(node, {0, 1, 2, 3}, 1);
        first.wait_until_ready();
        for (uint64_t call = 1; call <= 20; ++call) first.broadcast(0, call, 100);
        Share second(node, {0, 1, 2}, 2);
        if (second.channel) {
            second.wait_until_ready();
            for (uint64_t i = 1; i <= 20; ++i) second.broadcast(1, i, 100);
            EXPECT_FALSE(multicast::may_send(*first.channel, 1));
        }
        EXPECT_LE(counters.groups, 1u);
        node.barrier(0);
    });
}

// A pool group serves three of five processes: the other two leave it, and the next pool group is free for another communicator.
TEST(MulticastChannel, ThePoolServesSubsets) {
    run(one_host_each(5), {{"STARLING_MULTICAST", "pool"}, {"STARLING_MULTICAST_POOL", "2"}}, [](Node& node) {
        Share world(node, kAll, 0);
        node.wait_for([] { return counters.groups_ready >= 2; });
        node.barrier(0);
        for (uint64_t i = 1; i <= 6; ++i) {
            const std::vector<int> members = i % 2 ? std::vector<int>{0, 2, 4} : std::vector<int>{4, 3, 1};
            Share share(node, members, i);
            if (share.channel) {
                share.wait_until_ready();
                for (uint64_t call = 1; call <= 30; ++call) share.broadcast(static_cast<uint32_t>(call % 3), call, 100);
            }
        }
        node.barrier(1);
        if (node.rank == 0) { EXPECT_GE(counters.groups_from_pool, 1u); }
        EXPECT_LE(counters.groups, 16u);
    });
}

// Parents and children of a spawn: a group with processes of two jobs.
TEST(MulticastChannel, GroupsOfSeveralJobs) {
    run({{0, 0, 1, 1}, {0, 1, 2, 3}}, {{"STARLING_MULTICAST", "lazy"}}, [](Node& node) {
        Share share(node, {0, 1, 2, 3}, 1);
        ASSERT_NE(share.channel, nullptr);
        share.wait_until_ready();
        for (uint64_t call = 1; call <= 40; ++call) share.broadcast(call % 4, call, 2000);
    });
}

// In the tree of rank 0's messages rank 1 is above rank 5, which is above rank 21; rank 21 receives nothing for a while. Ranks 1 to 4 leave
// the group, which must make room for another, and rank 5 ends. Rank 21's reports then go to rank 1, which must know that rank 5 has ended;
// otherwise rank 0 waits forever.
TEST(MulticastChannel, AMemberThatLeftStillAcknowledgesForThoseBelowEndedMembers) {
    enum Stage { kOneIsDeaf = 1, kLeft };
    constexpr int kEnds = 5, kDeaf = 21, kMembers = 22;
    std::vector<int> everybody(kMembers);
    std::iota(everybody.begin(), everybody.end(), 0);
    run(one_host_each(kMembers), {{"STARLING_MULTICAST", "lazy"}, {"STARLING_MULTICAST_GROUPS", "1"}}, [&](Node& node) {
        Share whole(node, everybody, 1);
        whole.wait_until_ready();
        whole.broadcast(0, 1, 100);
        node.barrier(0);
        if (node.rank == kDeaf) {
            node.board.stage.store(kOneIsDeaf);
            while (node.board.stage.load() != kLeft) usleep(1000);
        } else {
            node.wait_for([&] { return node.board.stage.load() == kOneIsDeaf; });
            whole.broadcast(0, 2, 100);
        }
        if (node.rank >= 1 && node.rank <= 4) {
            Share part(node, {1, 2, 3, 4}, 2);
            part.wait_until_ready();
            for (uint64_t call = 1; call <= 20; ++call) part.broadcast(0, call, 100);
            EXPECT_FALSE(multicast::may_send(*whole.channel, 1));
            node.board.arrived[2].fetch_add(1);
        }
        if (node.rank == kEnds) {
            node.wait_for([&] { return node.board.arrived[2].load() == 4; });
            node.board.arrived[1].fetch_add(1);
            link::publish_state({.state = job::PortWord::finalized});
            _exit(0);
        }
        node.meet(1, node.rank == kDeaf ? kMembers : kMembers - 1);
        if (node.rank == 0) {
            EXPECT_FALSE(multicast::all_delivered());
            node.board.stage.store(kLeft);
        }
        progress::wait_until([] { return multicast::all_delivered(); });
        if (node.rank == 0) node.board.arrived[7].fetch_add(1);  // counts as the arrival of rank 5, which has ended
    });
}

}  // namespace
}  // namespace starling::message::test
