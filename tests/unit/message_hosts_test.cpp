// Messages between processes of several hosts, with the real endpoints over the loopback interface.
#include <unistd.h>

#include <atomic>

#include "link/remote_peer.h"
#include "message/point_to_point.h"
#include "message_traffic.h"

namespace starling::message::test {
namespace {

void traffic_over_hosts(Placement placement, const Settings& settings, int rounds,
                        const std::function<void(Node&)>& check = nullptr, bool switching = false) {
    Team team(std::move(placement));
    traffic(team, settings, switching, rounds, check);
}

TEST(MessageOverHosts, TrafficBetweenTwoProcesses) {
    traffic_over_hosts({{0, 0}, {0, 1}}, {{"STARLING_MAX_CONNECTIONS", "0"}}, 24, [](Node& node) {
        EXPECT_GT(counters.messages_udp, 100u);
        EXPECT_EQ(counters.messages_tcp, 0u);
        EXPECT_FALSE(node.peer(1 - node.rank).supports(transport::kSharesMemory));
        progress::wait_until([] { return link::all_acknowledged(); });
    });
}

TEST(MessageOverHosts, TrafficWithinAndBetweenHosts) {
    traffic_over_hosts({{0, 0, 0, 0}, {0, 1, 0, 1}}, {{"STARLING_DIRECT_THRESHOLD", "4"}}, 12, [](Node&) {
        EXPECT_GT(counters.messages_udp + counters.messages_tcp, 100u);
        EXPECT_GT(counters.messages_ring + counters.messages_inbox, 100u);
    });
}

TEST(MessageOverHosts, TrafficByTcp) {
    traffic_over_hosts({{0, 0}, {0, 1}}, {}, 24, [](Node& node) {
        EXPECT_GT(counters.messages_tcp, 100u);
        EXPECT_EQ(counters.connections, 1u);
        EXPECT_EQ(node.peer(1 - node.rank).state, link::ConnectionState::connected);
    });
}

TEST(MessageOverHosts, TrafficOverConnectionsThatOpenAndClose) {
    traffic_over_hosts(
        {{0, 0, 0}, {0, 1, 2}}, {{"STARLING_CONNECT_MESSAGES", "4"}, {"STARLING_IP_SOCKETS", "2"}}, 24,
        [](Node&) {
            EXPECT_GT(counters.opened, 4u);
            EXPECT_GT(counters.closed, 2u);
            EXPECT_GT(counters.messages_tcp, 50u);
            EXPECT_GT(counters.messages_udp, 50u);
        },
        true);
}

TEST(MessageOverHosts, MorePeersThanConnections) {
    traffic_over_hosts({{0, 0, 0, 0}, {0, 1, 2, 3}}, {{"STARLING_CONNECT_MESSAGES", "4"}, {"STARLING_MAX_CONNECTIONS", "1"}},
                       12, [](Node&) { EXPECT_LE(counters.connections, 1u); });
}

TEST(MessageOverHosts, TrafficBetweenJobs) { traffic_over_hosts({{0, 1, 1}, {0, 0, 1}}, {}, 16); }

TEST(MessageOverHosts, TrafficWithEagerLimitZeroUsesRendezvous) {
    traffic_over_hosts({{0, 0}, {0, 1}}, {{"STARLING_EAGER_LIMIT", "0"}}, 12);
}

TEST(MessageOverHosts, TrafficWithAProgressThread) { traffic_over_hosts({{0, 0}, {0, 1}}, {{"STARLING_WAIT", "thread"}}, 12); }

TEST(MessageOverHosts, TrafficWithoutSpinningBeforeSleep) {
    traffic_over_hosts({{0, 0, 0}, {0, 1, 1}}, {{"STARLING_SPIN_US", "0"}}, 12);
}

TEST(MessageOverHosts, TrafficWithPollingOnly) { traffic_over_hosts({{0, 0}, {0, 1}}, {{"STARLING_WAIT", "poll"}}, 12); }

// Sends that complete at once do not poll, and only polls notice that a window has room again.
TEST(MessageOverHosts, QueuedPacketsAreTransmittedWhileTheProgramOnlySends) {
    constexpr int kMany = 400, kMost = 10'000;
    for (const char* connections : {"0", "4"}) {
        Team team({{0, 0}, {0, 1}});
        team.start({{"STARLING_MAX_CONNECTIONS", connections}}, [&](Node& node) {
            std::atomic<int>& got = node.board.arrived[5];
            std::byte data[8] = {};
            const datatype::Datatype& bytes = datatype::predefined(MPI_BYTE);
            const auto send = [&] {
                SendRequest request;
                start_send(request, *node.channel, data, sizeof data, bytes, 1, 7, SendMode::standard);
                if (!request.done) progress::wait(request);
            };
            node.barrier(0);
            if (node.rank == 0) {
                int sent = 0;
                for (; got.load() < kMany && sent < kMost; ++sent) {
                    send();
                    usleep(100);
                }
                EXPECT_GE(got.load(), kMany) << sent;
                for (; sent < kMost; ++sent) send();
            } else {
                for (; got.load() < kMost; ++got) {
                    ReceiveRequest request;
                    start_receive(request, *node.channel, data, sizeof data, bytes, 0, 7);
                    progress::wait(request);
                }
            }
            node.barrier(1);
        });
        team.expect_success();
    }
}

// An envelope that takes the last room may be followed by a control packet: the query that cancels its message.
TEST(MessageOverHosts, AControlPacketThatAFlushQueuesIsSentLater) {
    static constexpr auto kKind = packet::PacketKind::ballot;
    static int handled, queued;
    for (const int other_host : {0, 1}) {
        Team team({{0, 0}, {0, other_host}});
        team.start({{"STARLING_MAX_CONNECTIONS", "0"}}, [](Node& node) {
            handled = queued = 0;
            link::register_handler(kKind, [](link::Peer&, const link::Packet&) { ++handled; });
            node.barrier(0);
            if (node.rank == 0) {
                link::Peer& peer = node.peer(1);
                link::upcalls.flush = [](link::Peer& to) {
                    link::upcalls.flush = flush;
                    for (; to.controls.empty(); ++queued) link::send_control(to, kKind, &queued, sizeof queued);
                    return flush(to);
                };
                link::mark_pending(peer);
                progress::test();
                // Acknowledgements may have made room already.
                EXPECT_TRUE(peer.controls.empty() || link::anything_pending());
                node.board.stage.store(queued);
            }
            node.barrier(1);
            if (node.rank == 1) node.wait_for([&] { return handled == node.board.stage.load(); });
            node.barrier(2);
        });
        team.expect_success();
    }
}

}  // namespace
}  // namespace starling::message::test
