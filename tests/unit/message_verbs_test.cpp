// Messages between processes of several hosts that have InfiniBand: connections by RC, and long messages that the receiver's device reads
// (message/protocol/rdma_read.h), with devices that break.
#include "base/counters.h"
#include "link/remote.h"
#include "message/point_to_point.h"
#include "message_traffic.h"
#include "transport/verbs/plugin.h"
#include "verbs_processes.h"

namespace starling::message::test {
namespace {

using verbs::processes::shared;

class MessageVerbs : public testing::Test {
  protected:
    void SetUp() override {
        verbs::processes::make();
        verbs::use_plugin(&verbs::processes::kPlugin);
    }
    void TearDown() override {
        verbs::use_plugin(nullptr);
        verbs::processes::unmake();
    }
    static void traffic_of_two(Settings settings, int rounds, const std::function<void(Node&)>& check, bool switching = false) {
        settings.push_back({"STARLING_CONNECT_MESSAGES", "4"});
        Team team(Placement{{0, 0}, {0, 1}});
        traffic(team, settings, switching, rounds, check);
    }
};

TEST_F(MessageVerbs, TrafficGoesByRcAndLongMessagesAreRead) {
    traffic_of_two({}, 24, [](Node& node) {
        EXPECT_EQ(node.peer(1 - node.rank).state, link::State::connected);
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_GT(counters.messages_rc, counters.messages_tcp);  // which is there before both know of verbs
        EXPECT_GT(counters.reads_rdma, 10u);
        progress::wait_until([] { return link::all_acknowledged(); });
    });
    EXPECT_GT(shared->frames, 100u);
}

TEST_F(MessageVerbs, LongMessagesGoInPiecesWhereTheyCantBeRead) {
    shared->refuse_memory = true;
    traffic_of_two({}, 24, [](Node&) {
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_EQ(counters.reads_rdma, 0u);
    });
}

TEST_F(MessageVerbs, AStreamIfThatIsAskedFor) {
    traffic_of_two({{"STARLING_LONG_PROTOCOL", "stream"}}, 24, [](Node&) {
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_EQ(counters.reads_rdma, 0u);
    });
}

TEST_F(MessageVerbs, TcpWhereQueuesAreRefused) {
    shared->refuse_queues = true;
    traffic_of_two({}, 24, [](Node&) {
        EXPECT_GT(counters.messages_tcp, 100u);
        EXPECT_EQ(counters.messages_rc, 0u);
    });
}

TEST_F(MessageVerbs, TcpWhereQueuesCarryNothing) {
    shared->closed_for_queues = true;
    traffic_of_two({}, 60, [](Node&) {
        EXPECT_GT(counters.messages_tcp, 20u);
        EXPECT_EQ(counters.messages_rc, 0u);
    });
}

TEST_F(MessageVerbs, QueuesBreakAllTheTime) {
    shared->breaks_after = 200;
    traffic_of_two({}, 60, [](Node&) { EXPECT_GT(counters.messages_tcp, 10u); });
    EXPECT_GE(shared->counted, 200u);
}

TEST_F(MessageVerbs, ConnectionsComeAndGo) {
    Team team(Placement{{0, 0, 0}, {0, 1, 2}});
    traffic(team, {{"STARLING_CONNECT_MESSAGES", "4"}}, true, 24, [](Node&) {
        EXPECT_GT(counters.opened, 4u);
        EXPECT_GT(counters.closed, 2u);
        EXPECT_GT(counters.messages_rc, 50u);
    });
}

TEST_F(MessageVerbs, MorePeersThanConnections) {
    Team team(Placement{{0, 0, 0, 0}, {0, 1, 2, 3}});
    traffic(team, {{"STARLING_CONNECT_MESSAGES", "4"}, {"STARLING_MAX_CONNECTIONS", "1"}}, false, 12,
            [](Node&) { EXPECT_LE(counters.connections, 1u); });
}

TEST_F(MessageVerbs, TrafficThatSleepsAtOnce) {
    traffic_of_two({{"STARLING_SPIN_US", "0"}}, 12, [](Node&) { EXPECT_GT(counters.messages_rc, 10u); });
}

}  // namespace
}  // namespace starling::message::test
