// Messages between processes on hosts with InfiniBand: RC connections, and long messages that the receiver's device reads
// (message/protocol/rdma_read.h), also with devices that break.
#include "base/counters.h"
#include "link/remote_peer.h"
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

TEST_F(MessageVerbs, TrafficUsesRcAndLongMessagesUseRdmaRead) {
    traffic_of_two({}, 24, [](Node& node) {
        EXPECT_EQ(node.peer(1 - node.rank).state, link::ConnectionState::connected);
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_GT(counters.messages_rc, counters.messages_tcp);  // TCP is used until both sides know about verbs
        EXPECT_GT(counters.reads_rdma, 10u);
        progress::wait_until([] { return link::all_acknowledged(); });
    });
    EXPECT_GT(shared->frames, 100u);
}

// Whether receivers poll or may sleep, short messages are written into rings, in order with everything else.
TEST_F(MessageVerbs, ShortMessagesAreWrittenIntoRdmaRings) {
    for (const char* wait : {"poll", "adaptive"}) {
        const uint64_t before = shared->transfers;
        traffic_of_two({{"STARLING_WAIT", wait}, {"STARLING_LONG_PROTOCOL", "stream"}}, 24,
                       [](Node&) { EXPECT_GT(counters.messages_rc, 100u); });
        EXPECT_GT(shared->transfers - before, 100u);
    }
}

TEST_F(MessageVerbs, NoRdmaRingsIfTheirLimitIsZero) {
    traffic_of_two({{"STARLING_MAX_DIRECT", "0"}, {"STARLING_LONG_PROTOCOL", "stream"}}, 24,
                   [](Node&) { EXPECT_GT(counters.messages_rc, 100u); });
    EXPECT_EQ(shared->transfers, 0u);
}

TEST_F(MessageVerbs, RdmaRingsWithSleepingOwnersAndBreakingQueues) {
    shared->breaks_after = 150;
    traffic_of_two({{"STARLING_SPIN_US", "0"}}, 40, [](Node&) { EXPECT_GT(counters.messages_tcp, 10u); });
}

TEST_F(MessageVerbs, LongMessagesUseFragmentsIfRegistrationFails) {
    shared->refuse_memory = true;
    traffic_of_two({}, 24, [](Node&) {
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_EQ(counters.reads_rdma, 0u);
    });
}

TEST_F(MessageVerbs, LongMessagesUseAStreamIfRequested) {
    traffic_of_two({{"STARLING_LONG_PROTOCOL", "stream"}}, 24, [](Node&) {
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_EQ(counters.reads_rdma, 0u);
    });
}

/// RDMA writes by the sender's device, with either form of notice: write with immediate, or separate send.
class MessageWrites : public MessageVerbs, public testing::WithParamInterface<const char*> {
  protected:
    static constexpr uint64_t kLong = 100'000;

    Settings settings() const { return {{"STARLING_LONG_PROTOCOL", GetParam()}}; }
    /// Runs two connected processes, with a long message from 0 to 1 that is not received yet.
    void one_message(const std::function<void(Node&, Sending*)>& body) {
        Team team(Placement{{0, 0}, {0, 1}});
        start(team, [&](Node& node, Sending* sending) {
            body(node, sending);
            node.barrier(7);
        });
        team.expect_success();
    }
    void start(Team& team, const std::function<void(Node&, Sending*)>& body) {
        Settings all = settings();
        all.push_back({"STARLING_CONNECT_MESSAGES", "4"});
        team.start(all, [body](Node& node) {
            bool mine = false, theirs = false;
            while (!mine || !theirs) {
                const link::Peer& peer = node.peer(1 - node.rank);
                mine =
                    peer.state == link::ConnectionState::connected && peer.base->by.remote_memory()->can_register(*peer.base);
                theirs = exchange(node, mine);
            }
            std::deque<Sending> sending;
            if (node.rank == 0) sending.emplace_back(Plan{0, 1, 9999, kLong, 5, false, false, false}).start(node);
            body(node, node.rank == 0 ? &sending.front() : nullptr);
        });
    }
    static void reach(Node& node, int stage) {
        node.wait_for([&] { return node.board.stage.load() == stage; });
    }

  private:
    /// Exchanges one short message in each direction.
    static bool exchange(Node& node, bool to) {
        const int other = 1 - node.rank;
        bool from = false;
        SendRequest send;
        ReceiveRequest receive;
        start_receive(receive, *node.channel, &from, 1, bytes_type(), other, 3);
        start_send(send, *node.channel, &to, 1, bytes_type(), other, 3, SendMode::standard);
        node.wait_for([&] { return send.done && receive.done; });
        return from;
    }
};
INSTANTIATE_TEST_SUITE_P(Told, MessageWrites, testing::Values("write", "note"),
                         [](auto& info) { return std::string(info.param); });

TEST_P(MessageWrites, LongMessagesUseRdmaWriteAfterCts) {
    traffic_of_two(settings(), 24, [](Node&) {
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_GT(counters.writes_rdma, 10u);
        EXPECT_EQ(counters.reads_rdma, 0u);
        progress::wait_until([] { return link::all_acknowledged(); });
    });
}

TEST_P(MessageWrites, LongMessagesUseAStreamIfRegistrationFails) {
    shared->refuse_memory = true;
    traffic_of_two(settings(), 24, [](Node&) {
        EXPECT_GT(counters.messages_rc, 100u);
        EXPECT_EQ(counters.writes_rdma, 0u);
    });
}

TEST_P(MessageWrites, FailoverToTcpWhenQueuesBreak) {
    shared->breaks_after = 120;
    traffic_of_two(settings(), 30, [](Node&) { EXPECT_GT(counters.messages_tcp, 10u); });
    EXPECT_GE(shared->counted, 120u);
}

// The receiver considers the sender dead, perhaps wrongly: its buffer must not change any more.
TEST_P(MessageWrites, NoRdmaWriteAfterTheReceiveHasFailed) {
    shared->hold_writes = true;
    one_message([](Node& node, Sending* sending) {
        if (sending) {
            node.wait_for([&] { return sending->request.stage == SendRequest::Stage::written; });
            EXPECT_NE(sending->request.writing, nullptr);
            EXPECT_FALSE(abandon(sending->request));  // false: the write has started, so the receiver decides
            node.board.stage = 1;
            reach(node, 2);
            node.wait_for([&] { return sending->request.writing == nullptr; });
            fail(MPI_ERR_PROC_ABORTED, "failed by the test");
            link::fail_peer(node.peer(1));
            EXPECT_TRUE(sending->request.done);
            node.board.stage = 3;
            return;
        }
        Receiving receiving(kLong, false);
        start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), kLong, bytes_type(), 0, 5);
        reach(node, 1);
        EXPECT_NE(receiving.request.awaited, nullptr);
        fail(MPI_ERR_PROC_ABORTED, "failed by the test");
        link::fail_peer(node.peer(0));
        ASSERT_TRUE(receiving.request.done);
        EXPECT_EQ(receiving.request.outcome.error, MPI_ERR_PROC_ABORTED);
        const std::vector<std::byte> then = receiving.buffer.memory;
        shared->hold_writes = false;
        node.board.stage = 2;
        reach(node, 3);
        EXPECT_EQ(receiving.buffer.memory, then);
    });
}

TEST_P(MessageWrites, SenderOrReceiverIsKilledDuringAnRdmaWrite) {
    for (const int victim : {0, 1}) {
        shared->hold_writes = true;
        Team team(Placement{{0, 1}, {0, 1}});
        start(team, [victim](Node& node, Sending* sending) {
            std::unique_ptr<Receiving> receiving;
            if (!sending) {
                receiving = std::make_unique<Receiving>(kLong, false);
                start_receive(receiving->request, *node.channel, receiving->buffer.memory.data(), kLong, bytes_type(), 0, 5);
            } else {
                node.wait_for([&] { return sending->request.stage == SendRequest::Stage::written; });
                node.board.stage = 1;
            }
            Request& mine = sending ? static_cast<Request&>(sending->request) : receiving->request;
            node.wait_for([&] { return mine.done; });
            EXPECT_NE(node.rank, victim);
            EXPECT_EQ(mine.outcome.error, MPI_ERR_PROC_ABORTED);
            if (receiving) { EXPECT_EQ(receiving->request.awaited, nullptr); }
        });
        for (unsigned ms = 0; ms < kLongest * 1000 && team.board().stage.load() < 1; ++ms) usleep(1000);
        team.kill_process(static_cast<size_t>(victim));
        team.expect_success(static_cast<size_t>(1 - victim));
        shared->hold_writes = false;
    }
}

TEST_P(MessageWrites, AnAbandonedSendIsWrittenFromItsCopy) {
    one_message([](Node& node, Sending* sending) {
        if (sending) {
            node.wait_for([&] { return sending->request.stage == SendRequest::Stage::offered; });
            EXPECT_TRUE(abandon(sending->request));
            std::fill(sending->buffer.memory.begin(), sending->buffer.memory.end(), std::byte{});
            node.board.stage = 1;
            return;
        }
        reach(node, 1);
        Receiving receiving(kLong, false);
        start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), kLong, bytes_type(), 0, 5);
        node.wait_for([&] { return receiving.request.done; });
        receiving.expect(Plan{0, 1, 9999, kLong, 5, false, false, false});
    });
}

// The connection closes after an rkey was sent for an RDMA write: before the peer starts the write, or during it.
TEST_P(MessageWrites, TheConnectionClosesBeforeOrDuringAnRdmaWrite) {
    for (const bool by_sender : {false, true}) {
        shared->hold_writes = !by_sender;
        one_message([by_sender](Node& node, Sending* sending) {
            if (sending) {
                if (by_sender)
                    link::request_close(node.peer(1));
                else
                    node.wait_for([&] { return sending->request.stage == SendRequest::Stage::written; });
                node.board.stage = 1;
                node.wait_for([&] { return sending->request.done; });
                EXPECT_EQ(sending->request.outcome.error, MPI_SUCCESS);
                return;
            }
            Receiving receiving(kLong, false);
            start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), kLong, bytes_type(), 0, 5);
            reach(node, 1);
            if (!by_sender) link::request_close(node.peer(0));
            shared->hold_writes = false;
            node.wait_for([&] { return receiving.request.done; });
            receiving.expect(Plan{0, 1, 9999, kLong, 5, false, false, false});
        });
    }
}

TEST_P(MessageWrites, ConnectionsOpenAndClose) {
    Team team(Placement{{0, 0, 0}, {0, 1, 2}});
    Settings all = settings();
    all.push_back({"STARLING_CONNECT_MESSAGES", "4"});
    traffic(team, all, true, 12, [](Node&) { EXPECT_GT(counters.closed, 2u); });
    EXPECT_GT(shared->transfers, 0u);
}

TEST_F(MessageVerbs, FallbackToTcpIfQueuesAreRefused) {
    shared->refuse_queues = true;
    traffic_of_two({}, 24, [](Node&) {
        EXPECT_GT(counters.messages_tcp, 100u);
        EXPECT_EQ(counters.messages_rc, 0u);
    });
}

TEST_F(MessageVerbs, FallbackToTcpIfQueuesCarryNothing) {
    shared->closed_for_queues = true;
    traffic_of_two({}, 60, [](Node&) {
        EXPECT_GT(counters.messages_tcp, 20u);
        EXPECT_EQ(counters.messages_rc, 0u);
    });
}

TEST_F(MessageVerbs, FailoverToTcpWhenQueuesBreak) {
    shared->breaks_after = 200;
    traffic_of_two({}, 60, [](Node&) { EXPECT_GT(counters.messages_tcp, 10u); });
    EXPECT_GE(shared->counted, 200u);
}

TEST_F(MessageVerbs, ConnectionsOpenAndClose) {
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

TEST_F(MessageVerbs, TrafficWithoutSpinningBeforeSleep) {
    traffic_of_two({{"STARLING_SPIN_US", "0"}}, 12, [](Node&) { EXPECT_GT(counters.messages_rc, 10u); });
}

}  // namespace
}  // namespace starling::message::test
