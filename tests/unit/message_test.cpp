// Messages between the processes of one host.
#include "message/point_to_point.h"
#include "message_traffic.h"

namespace starling::message::test {
namespace {

TEST(Message, TrafficByDefault) { traffic({0, 0, 0}, {}, false, 24); }

TEST(Message, TrafficOverSwitchingPaths) {
    traffic({0, 0, 0}, {{"STARLING_DIRECT_THRESHOLD", "4"}}, true, 40, [](Node&) {
        EXPECT_GT(counters.opened, 4u);
        EXPECT_GT(counters.closed, 4u);
        EXPECT_GT(counters.messages_ring, 100u);
        EXPECT_GT(counters.messages_inbox, 100u);
    });
}

TEST(Message, TrafficBetweenJobsOverSwitchingPaths) { traffic({0, 1, 1}, {{"STARLING_DIRECT_THRESHOLD", "4"}}, true, 16); }

TEST(Message, TrafficInTwoCopiesOverSwitchingPaths) {
    traffic({0, 0, 0}, {{"STARLING_DIRECT_THRESHOLD", "4"}, {"STARLING_SINGLE_COPY", "off"}}, true, 32,
            [](Node&) { EXPECT_GT(counters.closed, 4u); });
}

TEST(Message, TrafficOnTheBasePathAlone) {
    traffic({0, 0}, {{"STARLING_MAX_DIRECT", "0"}, {"STARLING_SINGLE_COPY", "off"}}, false, 12,
            [](Node&) { EXPECT_EQ(counters.messages_ring, 0u); });
}

TEST(Message, TrafficWithOneDirectRingForManyPeers) {
    traffic({0, 0, 0}, {{"STARLING_MAX_DIRECT", "1"}, {"STARLING_DIRECT_THRESHOLD", "4"}}, true, 24,
            [](Node&) { EXPECT_GT(counters.opened, 0u); });
}

TEST(Message, TrafficWithEagerLimitZeroUsesRendezvous) { traffic({0, 0}, {{"STARLING_EAGER_LIMIT", "0"}}, true, 12); }

TEST(Message, TrafficWithAProgressThread) {
    traffic({0, 0}, {{"STARLING_WAIT", "thread"}, {"STARLING_DIRECT_THRESHOLD", "4"}}, true, 16);
}

// --- Single cases ---

TEST(Message, OrphanMessagesWaitForTheirContext) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        const uint64_t context = 0x4560;
        if (node.rank == 0) {
            MatchContext early(context, node.everyone, 0);
            std::deque<Sending> sends;
            for (int i = 0; i < 10; ++i) {
                sends.emplace_back(Plan{0, 1, i, i % 2 ? 100000u : 8u, 5, false, false, false});
                start_send(sends.back().request, early, sends.back().buffer.memory.data(), sends.back().buffer.count,
                           bytes_type(), 1, 5, SendMode::standard);
            }
            node.barrier(0);
            for (Sending& sending : sends) progress::wait(sending.request);
        } else {
            node.barrier(0);
            for (int i = 0; i < 100; ++i) progress::poll();
            MatchContext late(context, node.everyone, 1);
            for (int i = 0; i < 10; ++i) {
                Receiving receiving(100000, false);
                start_receive(receiving.request, late, receiving.buffer.memory.data(), receiving.buffer.count, bytes_type(), 0,
                              5);
                progress::wait(receiving.request);
                receiving.expect({0, 1, i, i % 2 ? 100000u : 8u, 5, false, false, false});
            }
        }
        node.barrier(1);
    });
    team.expect_success();
}

// The threshold is so high that traffic alone does not open the connection.
void expect_a_connection(Team& team) {
    team.start({{"STARLING_DIRECT_THRESHOLD", "1000000"}}, [](Node& node) {
        const bool hint = true;
        MatchContext hinted(0x4560, node.everyone, node.rank);
        hinted.connect_hint = &hint;
        Receiving receiving(8, false);
        start_receive(receiving.request, hinted, receiving.buffer.memory.data(), 8, bytes_type(), 1 - node.rank, 5);
        Sending sending({node.rank, 1 - node.rank, 0, 8, 5, false, false, false});
        start_send(sending.request, hinted, sending.buffer.memory.data(), 8, bytes_type(), 1 - node.rank, 5,
                   SendMode::standard);
        progress::wait(receiving.request);
        receiving.expect({1 - node.rank, node.rank, 0, 8, 5, false, false, false});
        node.wait_for([&] { return node.peer(1 - node.rank).state == link::ConnectionState::connected; });
        node.barrier(0);
    });
    team.expect_success();
}

TEST(Message, AHintOpensADirectRingWithTheFirstMessage) {
    Team team({0, 0});
    expect_a_connection(team);
}

TEST(Message, AHintOpensATcpConnectionWithTheFirstMessage) {
    Team team(Placement{{0, 0}, {0, 1}});
    expect_a_connection(team);
}

TEST(Message, ACancelledReceiveMatchesNoMessage) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        if (node.rank == 0) {
            node.barrier(0);
            send_blocking(node, 64, 1, 7);
        } else {
            Receiving cancelled(64, false), kept(64, false);
            start_receive(cancelled.request, *node.channel, cancelled.buffer.memory.data(), 64, bytes_type(), 0, 7);
            start_receive(kept.request, *node.channel, kept.buffer.memory.data(), 64, bytes_type(), MPI_ANY_SOURCE, 7);
            EXPECT_TRUE(cancel_receive(cancelled.request));
            EXPECT_TRUE(cancelled.request.done);
            EXPECT_TRUE(cancelled.request.outcome.cancelled);
            EXPECT_FALSE(cancel_receive(cancelled.request));
            node.barrier(0);
            progress::wait(kept.request);
            kept.expect({0, 1, 0, 64, 7, false, false, false});
            EXPECT_FALSE(cancel_receive(kept.request));
        }
        node.barrier(1);
    });
    team.expect_success();
}

TEST(Message, InternalTagsMatchNoWildcard) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        if (node.rank == 0) {
            send_blocking(node, 8, 1, -5, 1);
            send_blocking(node, 8, 1, 5, 2);
        } else {
            Receiving first(8, false), second(8, false);
            start_receive(first.request, *node.channel, first.buffer.memory.data(), 8, bytes_type(), MPI_ANY_SOURCE,
                          MPI_ANY_TAG);
            progress::wait(first.request);
            first.expect({0, 1, 2, 8, 5, false, false, false});
            start_receive(second.request, *node.channel, second.buffer.memory.data(), 8, bytes_type(), 0, -5);
            progress::wait(second.request);
            second.expect({0, 1, 1, 8, -5, false, false, false});
        }
        node.barrier(1);
    });
    team.expect_success();
}

// Requests freed by MPI_Request_free are released when they complete.
TEST(Message, FreedRequestsAreReleasedOnceOnCompletion) {
    Team team({0, 0});
    team.start({{"STARLING_EAGER_LIMIT", "64"}}, [](Node& node) {
        static int disposed = 0;
        static constexpr RequestClass kClass{.dispose = [](Request&) { ++disposed; }};
        if (node.rank == 0) {
            std::deque<Sending> sends;
            for (int i = 0; i < 200; ++i) {
                Sending& sending = sends.emplace_back(Plan{0, 1, i, i % 2 ? 5000u : 8u, 1, false, false, false});
                sending.start(node);
                if (sending.request.done) continue;
                sending.request.operations = &kClass;
                sending.request.orphaned = true;
            }
            const int waiting =
                static_cast<int>(std::count_if(sends.begin(), sends.end(), [](const Sending& s) { return !s.request.done; }));
            EXPECT_GT(waiting, 0);
            node.barrier(0);
            progress::wait_until([&] { return disposed == waiting; });
            EXPECT_EQ(open_sends(), 0u);
        } else {
            node.barrier(0);
            for (int i = 0; i < 200; ++i) {
                Receiving receiving(5000, false);
                start_receive(receiving.request, *node.channel, receiving.buffer.memory.data(), 5000, bytes_type(), 0, 1);
                progress::wait(receiving.request);
                receiving.expect({0, 1, i, i % 2 ? 5000u : 8u, 1, false, false, false});
            }
        }
        node.barrier(1);
    });
    team.expect_success();
}

TEST(Message, FinalizeDoesNotWaitForFinalizedPeers) {
    Team team({0, 0});
    team.start({}, [](Node& node) {
        if (node.rank == 0) {
            std::deque<Sending> sends;
            for (int i = 0; i < 200; ++i)
                sends.emplace_back(Plan{0, 1, i, i % 10 ? 8u : 20000u, 1, false, false, false}).start(node);
            EXPECT_GT(open_sends(), 0u);
            node.barrier(0);
            node.wait_for([&] {
                drop_sends_to_finalized();
                return open_sends() == 0 && !link::anything_pending();
            });
            for (const Sending& sending : sends) EXPECT_TRUE(sending.request.done);
        } else {
            const link::Process& me = link::self();
            me.job->segment().cell(me.rank).state.store(job::RankState::finalized);
            node.board.arrived[0].fetch_add(1);
        }
    });
    team.expect_success();
}

// --- The other job ends ---

constexpr int kReady = 1, kVictimIsDead = 2;

/// Waits until all requests complete, with MPI_ERR_PROC_ABORTED.
template <class T>
void expect_aborted(std::deque<T>& all) {
    for (T& one : all) {
        progress::wait(one.request);
        EXPECT_EQ(one.request.outcome.error, MPI_ERR_PROC_ABORTED);
    }
}

/// Runs `survivor` as process 0 and `victim`, of another job, as process 1. Kills the victim when the survivor sets the stage to kReady, and
/// then sets it to kVictimIsDead.
void with_victim(const Settings& settings, const std::function<void(Node&)>& survivor,
                 const std::function<void(Node&)>& victim) {
    Team team({0, 1});
    team.start(settings, [&](Node& node) { (node.rank == 0 ? survivor : victim)(node); });
    for (int i = 0; i < 20000 && team.board().stage.load() != kReady; ++i) usleep(1000);
    EXPECT_EQ(team.board().stage.load(), kReady);
    team.kill_process(1);
    team.board().stage.store(kVictimIsDead);
    team.expect_success(0);
}

[[noreturn]] void sleep_for_ever() {
    for (;;) pause();
}

void expect_nothing_works_any_more(Node& node) {
    std::deque<Sending> sends;
    for (const uint64_t bytes : {8u, 100000u}) sends.emplace_back(Plan{0, 1, 0, bytes, 1, false, false, false}).start(node);
    expect_aborted(sends);
    std::deque<Receiving> receives;
    for (const int source : {1, MPI_ANY_SOURCE}) {
        Receiving& r = receives.emplace_back(8, false);
        start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), source, 1);
    }
    expect_aborted(receives);
    EXPECT_EQ(open_sends(), 0u);
}

TEST(DeadJob, FailsSendsThatWereNeverReceived) {
    with_victim(
        {},
        [](Node& node) {
            std::deque<Sending> sends;
            // Start more sends than the inbox holds, some of them long messages that no receiver fetches.
            for (int i = 0; i < 200; ++i)
                sends.emplace_back(Plan{0, 1, i, i % 10 ? 8u : 50000u, 1, i % 20 == 1, false, false}).start(node);
            std::deque<Receiving> receives;
            for (int i = 0; i < 10; ++i) {
                Receiving& r = receives.emplace_back(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), i % 2 ? 1 : MPI_ANY_SOURCE,
                              i % 3 ? 4 : MPI_ANY_TAG);
            }
            node.board.stage.store(kReady);
            expect_aborted(receives);
            int failed = 0;
            for (Sending& sending : sends) {
                progress::wait(sending.request);
                failed += sending.request.outcome.error == MPI_ERR_PROC_ABORTED;
            }
            EXPECT_GE(failed, 200 - 64);
            expect_nothing_works_any_more(node);
            progress::wait_until([] { return !link::anything_pending(); });
        },
        [](Node&) { sleep_for_ever(); });
}

void stream_that_breaks_off(bool survivor_sends, const char* max_direct) {
    constexpr uint64_t kLong = 64 << 20;
    const auto send = [](Node& node, int to) {
        auto* sending = new Sending(Plan{node.rank, to, 0, kLong, 1, false, false, false});
        sending->start(node);
        return sending;
    };
    const auto receive = [](Node& node, int from) {
        auto* receiving = new Receiving(kLong, false);
        start_receive(receiving->request, *node.channel, receiving->buffer.memory.data(), kLong, bytes_type(), from, 1);
        return receiving;
    };
    with_victim(
        {{"STARLING_SINGLE_COPY", "off"}, {"STARLING_MAX_DIRECT", max_direct}},
        [&](Node& node) {
            // Send first, so that a connection opens if it is allowed. The stream starts on it or on the base path, and stalls.
            for (int i = 0; i < 20; ++i) send_blocking(node, 8, 1, 2);
            Request* request = survivor_sends ? static_cast<Request*>(&send(node, 1)->request) : &receive(node, 1)->request;
            node.wait_for([&] { return node.board.arrived[3].load() == 1; });
            EXPECT_FALSE(request->done);
            node.board.stage.store(kReady);
            progress::wait(*request);
            EXPECT_EQ(request->outcome.error, MPI_ERR_PROC_ABORTED);
            expect_nothing_works_any_more(node);
        },
        [&](Node& node) {
            std::deque<Receiving> small;
            for (int i = 0; i < 20; ++i) {
                Receiving& r = small.emplace_back(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 0, 2);
                progress::wait(r.request);
            }
            if (survivor_sends) {
                auto* receiving = receive(node, 0);
                node.wait_for([&] { return receiving->request.moved > kLong / 8; });
            } else {
                auto* sending = send(node, 0);
                node.wait_for([&] { return sending->request.moved > kLong / 8; });
            }
            node.board.arrived[3].store(1);
            sleep_for_ever();
        });
}

TEST(DeadJob, FailsAStreamToItOverADirectRing) { stream_that_breaks_off(true, "16"); }
TEST(DeadJob, FailsAStreamToItOnTheBasePath) { stream_that_breaks_off(true, "0"); }
TEST(DeadJob, FailsAStreamFromItOverADirectRing) { stream_that_breaks_off(false, "16"); }
TEST(DeadJob, FailsAStreamFromItOnTheBasePath) { stream_that_breaks_off(false, "0"); }

TEST(DeadJob, MessagesSentBeforeItsDeathAreReceived) {
    for (const char* max_direct : {"16", "0"})
        with_victim(
            {{"STARLING_MAX_DIRECT", max_direct}, {"STARLING_DIRECT_THRESHOLD", "4"}},
            [](Node& node) {
                // First open a connection, then let the peer send while this process does not poll.
                for (int i = 0; i < 20; ++i) {
                    Receiving r(8, false);
                    start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 1, 1);
                    progress::wait(r.request);
                    send_blocking(node, 8, 1, 3);
                }
                node.board.arrived[2].store(1);
                while (node.board.arrived[3].load() != 1) usleep(1000);
                node.board.stage.store(kReady);
                while (node.board.stage.load() != kVictimIsDead) usleep(1000);
                for (int i = 0; i < 30; ++i) {
                    Receiving r(100, false);
                    start_receive(r.request, *node.channel, r.buffer.memory.data(), 100, bytes_type(), 1, 1);
                    progress::wait(r.request);
                    r.expect({1, 0, i, 100, 1, false, false, false});
                }
                // This receive matches a rendezvous message, whose data only the living sender could transfer.
                Receiving r(100000, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 100000, bytes_type(), 1, 1);
                progress::wait(r.request);
                EXPECT_EQ(r.request.outcome.error, MPI_ERR_PROC_ABORTED);
                node.wait_for([&] { return node.peer(1).dead; });
                expect_nothing_works_any_more(node);
            },
            [](Node& node) {
                for (int i = 0; i < 20; ++i) {
                    send_blocking(node, 8, 0, 1);
                    Receiving r(8, false);
                    start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 0, 3);
                    progress::wait(r.request);
                }
                while (node.board.arrived[2].load() != 1) usleep(1000);
                for (int i = 0; i < 30; ++i) send_blocking(node, 100, 0, 1, i);
                Sending large({1, 0, 0, 100000, 1, false, false, false});
                large.start(node);
                node.board.arrived[3].store(1);
                sleep_for_ever();
            });
}

// An unexpected rendezvous message (streamed) whose sender is dead: there is no peer to send the CTS to.
TEST(DeadJob, AnUnexpectedRtsOutlivesItsSender) {
    with_victim(
        {{"STARLING_SINGLE_COPY", "off"}},
        [](Node& node) {
            progress::wait_until([&] { return node.channel->queues().find(1, 1) != nullptr; });
            node.board.stage.store(kReady);
            node.wait_for([&] { return node.peer(1).dead; });
            Receiving r(100000, false);
            start_receive(r.request, *node.channel, r.buffer.memory.data(), 100000, bytes_type(), 1, 1);
            progress::wait(r.request);
            EXPECT_EQ(r.request.outcome.error, MPI_ERR_PROC_ABORTED);
        },
        [](Node& node) {
            Sending large({1, 0, 0, 100000, 1, false, false, false});
            large.start(node);
            sleep_for_ever();
        });
}

// A child may learn the job of its parents only after that job has ended: then its segment cannot be mapped.
TEST(DeadJob, FailsReceivesFromAJobThatEndedBeforeItWasMapped) {
    Team team({0});
    team.start({}, [](Node& node) {
        link::Job* const gone = link::find_job({.id = 0x77, .owner_pid = INT32_MAX, .owner_fd = 3});
        Everyone both;
        both.members = {node.everyone.members[0], {gone, 0}};
        both.holds.emplace_back(gone);
        MatchContext channel(kContext + 0x10, both, 0);
        Receiving before(8, false), after(8, false);
        start_receive(before.request, channel, before.buffer.memory.data(), 8, bytes_type(), 1, 1);
        EXPECT_EQ(gone->map(), MPI_ERR_PROC_ABORTED) << failure_text();
        start_receive(after.request, channel, after.buffer.memory.data(), 8, bytes_type(), 1, 1);
        for (Receiving* const each : {&before, &after}) {
            progress::wait(each->request);
            EXPECT_EQ(each->request.outcome.error, MPI_ERR_PROC_ABORTED);
        }
        EXPECT_TRUE(sender_ended(channel, 1));
    });
    team.expect_success();
}

// A process of a failed job that was not killed yet still writes to its direct ring in this process's memory.
TEST(DeadJob, AWriterThatStillRunsCorruptsNoReusedRing) {
    Team team({0, 1, 2});
    team.start({{"STARLING_MAX_DIRECT", "1"}, {"STARLING_DIRECT_THRESHOLD", "4"}}, [](Node& node) {
        if (node.rank == 1) {
            for (int i = 0;; ++i) {
                Sending sending({1, 0, i, 8, 1, false, false, false});
                sending.start(node);
                progress::wait(sending.request);
                node.board.arrived[3].store(i);
            }
        }
        if (node.rank == 0) {
            for (int i = 0; i < 500; ++i) {
                Receiving r(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 1, 1);
                progress::wait(r.request);
                r.expect({1, 0, i, 8, 1, false, false, false});
            }
            EXPECT_GT(counters.opened, 0u);
            node.peer(1).job.segment().header().state.store(job::JobState::failed);
            node.wait_for([&] { return node.peer(1).dead; });
            node.meet(0, 2);
            for (int i = 0; i < 2000; ++i) {
                Receiving r(8, false);
                start_receive(r.request, *node.channel, r.buffer.memory.data(), 8, bytes_type(), 2, 1);
                progress::wait(r.request);
                r.expect({2, 0, i, 8, 1, false, false, false});
            }
        } else {
            node.meet(0, 2);
            for (int i = 0; i < 2000; ++i) send_blocking(node, 8, 0, 1, i);
        }
    });
    team.expect_success(0);
    team.expect_success(2);
}

}  // namespace
}  // namespace starling::message::test
