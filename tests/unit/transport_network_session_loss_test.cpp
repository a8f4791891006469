// The cost of a lost datagram for a session, in time and in retransmissions, and the treatment of peers or connections that are merely
// slow. Time is simulated.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "session_simulation.h"
#include "transport/network/session/session.h"

namespace starling::network {
namespace {

constexpr uint64_t kRoundTrip = 40 * kMicrosecond;  ///< round-trip time of the simulated network with its default settings
/// Time until a lost last datagram is retransmitted: two round trips, plus the delay allowed for an acknowledgement.
constexpr uint64_t kProbeTime = 2 * kRoundTrip + 2 * kAckDelay;
constexpr uint64_t kMargin = 50 * kMicrosecond;  ///< tolerance for the transit time, and for deviations of the round-trip time

/// Two processes that have exchanged datagrams: round-trip times are known, and from here on the test decides the fate of each datagram.
struct Met {
    Network network{1};
    uint64_t got = 0, got_at = 0, sent = 1000;

    explicit Met(int rails = 1) {
        for (int i = 0; i < 2; ++i) network.set_rails(i, rails);
        Exchange before(network, 200, 8);
        EXPECT_TRUE(before.run(100'000));
        for (auto& end : network.ends) {
            end->counters = {};
            end->on_packet = [](Session&, const packet::Header&, const std::byte*) {};
        }
        network.ends[1]->on_packet = [this](Session&, const packet::Header& header, const std::byte*) {
            EXPECT_EQ(header.message.context, 1000 + got);
            ++got;
            got_at = network.now;
        };
        network.run_until(network.now + 10 * kMillisecond);
    }
    /// Loses the datagrams for whose number, counted from now, `which` is true; the others arrive.
    void lose(std::function<bool(uint64_t)> which) {
        network.fate = [which, next = uint64_t{0}]() mutable { return which(next++) ? Fate::lost : Fate::arrives; };
    }
    void send(uint32_t bytes = 8) { ASSERT_TRUE(network.send(0, sent++, bytes)); }
    /// Returns the time in ns until all messages have arrived.
    uint64_t time_to_arrive() {
        const uint64_t start = network.now;
        while (got < sent - 1000)
            if (!network.step()) break;
        return got_at - start;
    }
    End& end(int which) { return *network.ends[which]; }
    const SessionPath& path() { return network.session(0).path(0); }
};

TEST(SessionLoss, SingleLossIsRetransmittedAfterTwoRoundTrips) {
    Met met;
    met.lose([](uint64_t n) { return n == 0; });
    met.send();
    EXPECT_LT(met.time_to_arrive(), kProbeTime + kMargin);
    EXPECT_EQ(met.end(0).counters.repeated, 1u);
}

TEST(SessionLoss, ALostRetransmissionIsRetransmitted) {
    Met met;
    met.lose([](uint64_t n) { return n < 3; });
    met.send();
    EXPECT_LT(met.time_to_arrive(), (1 + 2 + 4) * kProbeTime + kMargin);
    EXPECT_EQ(met.end(0).counters.repeated, 3u);
}

TEST(SessionLoss, ATailLossIsFoundByOneProbe) {
    Met met;
    met.lose([](uint64_t n) { return n == 8 || n == 9; });
    for (int i = 0; i < 10; ++i) met.send(1200);
    EXPECT_LT(met.time_to_arrive(), kProbeTime + 3 * kRoundTrip + 2 * kMargin);
    EXPECT_EQ(met.end(0).counters.repeated, 2u);
}

TEST(SessionLoss, AWhollyLostBurstIsRetransmittedOnce) {
    Met met;
    met.lose([](uint64_t n) { return n < 12; });
    for (int i = 0; i < 12; ++i) met.send(1200);
    EXPECT_LT(met.time_to_arrive(), 2 * kProbeTime);
    EXPECT_LE(met.end(0).counters.repeated, 13u);
    EXPECT_GE(met.path().window.bytes(), CongestionWindow::kLeast * 1472u);
}

TEST(SessionLoss, ALostAcknowledgementCostsOneProbe) {
    Met met;
    met.lose([](uint64_t n) { return n == 1; });
    met.send();
    EXPECT_LT(met.time_to_arrive(), kRoundTrip);
    met.network.run_until(met.network.now + 100 * kMillisecond);
    EXPECT_TRUE(met.network.session(0).idle());
    EXPECT_EQ(met.end(0).counters.repeated, 1u);
    EXPECT_EQ(met.end(1).counters.duplicates, 1u);
    EXPECT_EQ(met.got, 1u);
}

TEST(SessionLoss, NoProbesToAPeerThatAnswersInTime) {
    Met met;
    for (int i = 0; i < 1000; ++i) {
        met.send();
        met.network.run_until(met.network.now + 20 * kMillisecond);
    }
    EXPECT_EQ(met.got, 1000u);
    EXPECT_EQ(met.end(0).counters.timeouts, 0u);
    EXPECT_EQ(met.end(0).counters.repeated, 0u);
}

TEST(SessionLoss, ReorderedDatagramsAreNotAllRetransmitted) {
    Met met;
    uint64_t number = 0, late = 0;
    met.network.fate = [&] {
        if (++number % 20 != 0) return Fate::arrives;
        ++late;
        return Fate::late;  // this datagram is late by many round trips
    };
    for (int i = 0; i < 2000; ++i) {
        met.send(1200);
        met.network.run_until(met.network.now + 10 * kMicrosecond);
    }
    met.time_to_arrive();
    EXPECT_EQ(met.got, 2000u);
    EXPECT_LE(met.end(0).counters.repeated, 2 * late) << "only late datagrams and the last one are retransmitted";
}

TEST(SessionLoss, AComputingPeerCostsFewProbesAndNoCongestionWindow) {
    for (const uint64_t computes : {kMillisecond, 5 * kMillisecond, 100 * kMillisecond, 3 * kSecond}) {
        Met met(2);
        const uint64_t window = met.path().window.bytes();
        met.end(1).listening = false;
        const uint64_t datagrams = met.end(0).datagrams;
        for (int i = 0; i < 10; ++i) met.send(1200);
        met.network.run_until(met.network.now + computes);
        EXPECT_LE(met.end(0).datagrams - datagrams, computes < 2 * kMillisecond ? 12u : 60u) << computes;
        met.network.listen(1);
        EXPECT_EQ(met.got, 10u);
        met.network.run_until(met.network.now + kMillisecond);
        EXPECT_TRUE(met.network.session(0).idle()) << computes;
        EXPECT_GE(met.path().window.bytes(), window) << computes;
        EXPECT_FALSE(met.path().suspended) << computes;
        // The suspicion has left no trace: the next loss is detected as soon as usual.
        met.lose([](uint64_t n) { return n == 0; });
        met.send();
        EXPECT_LT(met.time_to_arrive(), computes < 2 * kMillisecond ? 3 * kProbeTime : 4 * computes + kProbeTime) << computes;
    }
}

TEST(SessionLoss, FailoverFromAStalledConnectionToDatagrams) {
    Met met;
    PipePair connection(met.network);
    connection.ends[0].stalled = true;
    for (int i = 0; i < 20; ++i) met.send(4000);  // more data than the session sends as datagrams beside a connection
    const uint64_t took = met.time_to_arrive();
    EXPECT_GT(connection.ends[0].frames, 0u);
    EXPECT_EQ(met.got, 20u);
    EXPECT_LT(took, 4 * kMillisecond) << "the session does not wait for TCP's retransmission, which never happens here";
    // The session does not use the stalled connection until its owner attaches it again.
    const uint64_t frames = connection.ends[0].frames;
    for (int i = 0; i < 20; ++i) met.send(4000);
    met.time_to_arrive();
    EXPECT_EQ(connection.ends[0].frames, frames);
    connection.ends[0].stalled = false;
    met.network.session(0).detach(connection.ends[0]);
    met.network.session(0).attach(connection.ends[0]);
    for (int i = 0; i < 20; ++i) met.send(4000);
    met.time_to_arrive();
    EXPECT_GT(connection.ends[0].frames, frames);
}

TEST(SessionLoss, NoFailoverFromAConnectionToAComputingPeer) {
    Met met;
    PipePair connection(met.network);
    met.end(1).listening = false;
    connection.ends[0].hold = true;
    const uint64_t datagrams = met.end(0).datagrams;
    for (int i = 0; i < 20; ++i) met.send(4000);
    met.network.run_until(met.network.now + kSecond);
    EXPECT_LT(met.end(0).datagrams - datagrams, 30u) << "only requests for an acknowledgement, less and less often";
    EXPECT_EQ(met.end(0).counters.repeated, 0u);
    connection.ends[0].let_go();
    met.network.listen(1);
    met.time_to_arrive();
    EXPECT_EQ(met.got, 20u);
    EXPECT_EQ(met.end(0).counters.repeated, 0u);
}

TEST(SessionLoss, AnAcknowledgementLostBesideAConnectionIsProbedFor) {
    Met met;
    PipePair connection(met.network);
    met.lose([](uint64_t n) { return n == 0; });
    for (int i = 0; i < 5; ++i) met.send(4000);
    met.time_to_arrive();
    met.network.run_until(met.network.now + 20 * kMillisecond);
    EXPECT_TRUE(met.network.session(0).idle()) << "the sender's memory is released, though the peer sends no data";
    EXPECT_EQ(met.end(0).counters.repeated, 0u);
}

TEST(SessionLoss, TheFirstAcknowledgementIsProbedForIfLost) {
    Network network(14);
    PipePair connection(network);
    network.fate = [next = 0]() mutable { return next++ == 0 ? Fate::lost : Fate::arrives; };
    uint64_t got = 0;
    network.ends[1]->on_packet = [&got](Session&, const packet::Header&, const std::byte*) { ++got; };
    for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(network.send(0, i, 4000));
    network.run_until(network.now + 5 * kSecond);
    EXPECT_EQ(got, 5u);
    EXPECT_TRUE(network.session(0).idle()) << "a path without a measured round-trip time can be asked for an acknowledgement";
}

TEST(SessionLoss, ALostShortDatagramIsRetransmittedBesideTheConnection) {
    Met met;
    PipePair connection(met.network);
    connection.ends[0].stalled = true;
    met.lose([](uint64_t n) { return n % 3 == 0; });
    for (int i = 0; i < 50; ++i) {
        met.send();
        EXPECT_LT(met.time_to_arrive(), 4 * kProbeTime);
        met.network.run_until(met.network.now + 5 * kMillisecond);
    }
    EXPECT_EQ(connection.ends[0].frames, 0u);
}

/// Sends 8-byte messages, one per `pause`; returns the number of acknowledgements sent in separate datagrams.
uint64_t alone_while(Met& met, uint64_t duration, uint64_t pause) {
    const uint64_t before = met.end(1).counters.acks_alone;
    for (const uint64_t end = met.network.now + duration; met.network.now < end; met.network.run_until(met.network.now + pause))
        met.send();
    return met.end(1).counters.acks_alone - before;
}

TEST(SessionLoss, AcknowledgementsAreDelayedAfterALongTimeWithoutLoss) {
    Met met;
    EXPECT_GE(alone_while(met, 30 * kMillisecond, kMillisecond), 28u) << "at first, each datagram is acknowledged separately";
    alone_while(met, kSecond, kMillisecond);
    EXPECT_TRUE(met.network.session(0).allows_hold());
    EXPECT_LE(alone_while(met, 64 * kMillisecond, kMillisecond), 9u) << "at most one acknowledgement in 8 ms";
    // An acknowledgement is held for at most 32 datagrams.
    EXPECT_GE(alone_while(met, 64 * kMillisecond, 50 * kMicrosecond), 64 * 20 / 32);
    EXPECT_EQ(met.end(0).counters.timeouts, 0u);
    EXPECT_EQ(met.end(0).counters.repeated, 0u);
}

// While acknowledgements are delayed, the loss of a last datagram is detected late. That occurs once only, because acknowledgements are
// sent early from then on.
TEST(SessionLoss, ALossEndsTheDelayOfAcknowledgements) {
    Met met;
    alone_while(met, kSecond, kMillisecond);
    met.network.run_until(met.network.now + 20 * kMillisecond);
    met.lose([](uint64_t n) { return n == 0; });
    met.send();
    const uint64_t first = met.time_to_arrive();
    EXPECT_LT(first, kProbeTime + kMostHold * kAckDelay + kMargin);
    EXPECT_FALSE(met.network.session(0).allows_hold());
    met.network.run_until(met.network.now + 20 * kMillisecond);
    met.lose([](uint64_t n) { return n == 0; });
    met.send();
    EXPECT_LT(met.time_to_arrive(), kProbeTime + 2 * kMargin);
}

// A process that waits only for acknowledgements receives them at once.
TEST(SessionLoss, AProbeIsAnsweredAtOnceDespiteDelayedAcknowledgements) {
    Met met;
    alone_while(met, kSecond, kMillisecond);
    met.network.run_until(met.network.now + 20 * kMillisecond);
    met.send();
    const uint64_t start = met.network.now;
    met.network.session(0).request_ack(start);
    while (!met.network.session(0).idle()) ASSERT_TRUE(met.network.step());
    EXPECT_LT(met.network.now - start, 2 * kRoundTrip);
}

/// Two processes with an RC connection (as by a verbs device) besides the datagrams.
struct ByDevice : Met {
    PipePair connection{network, true};
    const uint64_t before = datagrams_so_far();
    uint64_t datagrams_so_far() { return end(0).datagrams + end(1).datagrams; }
    uint64_t datagrams() { return datagrams_so_far() - before; }
    uint64_t time_to_be_idle() {
        const uint64_t start = network.now;
        while (!network.session(0).idle() && network.step()) {}
        return network.now - start;
    }
};

// Such a connection loses nothing. So acknowledgements, which only free memory, can wait, and use the connection too.
TEST(SessionLoss, AnRcConnectionIsAcknowledgedRarelyAndOverItself) {
    ByDevice met;
    EXPECT_LE(alone_while(met, 500 * kMillisecond, 2500 * kMicrosecond), 500 / 20 + 1);
    EXPECT_EQ(met.got, 200u);
    EXPECT_LE(met.time_to_be_idle(), kDeviceAckDelay + kRoundTrip);
    for (int i = 0; i < 500; ++i, met.network.run_until(met.network.now + 10 * kMicrosecond)) met.send(4000);
    met.network.run_until(met.network.now + kMillisecond);
    EXPECT_EQ(met.got, 500u + 200u);
    EXPECT_EQ(met.datagrams(), 0u);
}

TEST(SessionLoss, RepliesAcknowledgeFramesOfAnRcConnection) {
    ByDevice met;
    met.end(1).on_packet = [&](Session&, const packet::Header&, const std::byte*) { ++met.got; };
    for (int i = 0; i < 1000; ++i) {
        met.send();
        met.time_to_arrive();
        met.network.run_until(met.network.now + 2 * kMillisecond);
        ASSERT_TRUE(met.network.send(1, 0, 8));
        met.network.run_until(met.network.now + kMillisecond);
    }
    EXPECT_EQ(met.connection.ends[0].frames, 1000u);
    EXPECT_LE(met.connection.ends[1].frames, 1001u);
    EXPECT_EQ(met.datagrams(), 0u);
}

TEST(SessionLoss, RequestedAcknowledgementsOfAnRcConnectionAreImmediate) {
    ByDevice met;
    met.send();
    met.time_to_arrive();
    met.network.session(0).request_acks(met.network.now);
    EXPECT_LT(met.time_to_be_idle(), 2 * kRoundTrip);
    // Acknowledgements arrive even if the request for them is lost, or the reply.
    for (uint64_t lost = 0; lost < 2; ++lost) {
        met.network.run_until(met.network.now + 5 * kMillisecond);
        met.lose([&](uint64_t n) { return n == lost; });
        met.send();
        met.time_to_arrive();
        met.network.session(0).request_acks(met.network.now);
        met.network.arm(0);
        EXPECT_LT(met.time_to_be_idle(), 4 * kProbeTime) << lost;
    }
}

TEST(SessionLoss, AComputingPeerIsSeldomProbedOnAnRcConnection) {
    ByDevice met;
    met.end(1).listening = false;
    met.connection.ends[0].hold = true;
    for (int i = 0; i < 20; ++i) met.send(4000);
    met.network.run_until(met.network.now + kSecond);
    EXPECT_GT(met.datagrams(), 0u);
    EXPECT_LT(met.datagrams(), 30u);
    met.connection.ends[0].let_go();
    met.network.listen(1);
    met.time_to_arrive();
    EXPECT_EQ(met.got, 20u);
    EXPECT_EQ(met.end(0).counters.repeated, 0u);
}

}  // namespace
}  // namespace starling::network
