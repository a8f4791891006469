// Sessions on a simulated network: whatever the network does, messages arrive once, whole and in order.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "session_simulation.h"
#include "transport/network/session/session.h"

namespace starling::network {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kMessages = 20'000;
constexpr uint64_t kTroubles = 30;
#else
constexpr uint64_t kMessages = 1'000'000;
constexpr uint64_t kTroubles = 150;
#endif

constexpr uint64_t kSteps = 20'000'000;

TEST(Session, AnExchangeCostsOneDatagramEachWay) {
    Network network(1);
    Exchange exchange(network, 0, 8);
    uint64_t replies = 0;
    network.ends[1]->on_packet = [&](Session&, const packet::Header&, const std::byte*) { network.send(1, replies++, 8); };
    uint64_t rounds = 0;
    network.ends[0]->on_packet = [&](Session&, const packet::Header&, const std::byte*) {
        if (++rounds < 1000) network.send(0, rounds, 8);
    };
    network.send(0, 0, 8);
    while (rounds < 1000) ASSERT_TRUE(network.step());
    EXPECT_EQ(network.ends[0]->datagrams, 1000u);
    EXPECT_EQ(network.ends[1]->datagrams, 1000u);
    EXPECT_EQ(network.ends[0]->counters.repeated + network.ends[1]->counters.repeated, 0u);
}

TEST(Session, AMillionMessagesWithAThirdLostAreRetransmitted) {
    Network network(2);
    network.weather = {30, 5, 20 * kMicrosecond, 60 * kMicrosecond};
    Exchange exchange(network, kMessages / 2, 3000);
    EXPECT_TRUE(exchange.run(kSteps));
    EXPECT_FALSE(network.undecodable);
    EXPECT_GT(network.ends[0]->counters.repeated, kMessages / 100);
}

TEST(Session, EveryFateOfTheFirstDatagrams) {
    constexpr int kDecided = 8;
    for (uint32_t fates = 0; fates < 1u << (2 * kDecided); ++fates) {
        Network network(3);
        int next = 0;
        network.fate = [&] {
            const int which = next++;
            return which < kDecided ? static_cast<Fate>(fates >> (2 * which) & 3) : Fate::arrives;
        };
        Exchange exchange(network, 4, 2500);
        ASSERT_TRUE(exchange.run(2000)) << "failed with the datagram fates " << fates;
        ASSERT_FALSE(network.undecodable);
    }
}

TEST(Session, EveryKindOfLossDuplicationAndDelay) {
    for (uint64_t seed = 0; seed < 300; ++seed) {
        Network network(seed);
        std::mt19937_64 random(seed * 7919 + 1);
        network.weather.lost = static_cast<int>(random() % 50);
        network.weather.doubled = static_cast<int>(random() % 30);
        network.weather.delay = (1 + random() % 2000) * kMicrosecond;
        network.weather.jitter = random() % 4 == 0 ? 5 * kMillisecond : random() % (100 * kMicrosecond) + 1;
        Exchange exchange(network, 300, random() % 3 == 0 ? kMaxPayload : 2000, random() % 2 == 0);
        ASSERT_TRUE(exchange.run(5'000'000)) << "seed " << seed << ": " << exchange.got[0] << " and " << exchange.got[1];
        ASSERT_FALSE(network.undecodable) << "seed " << seed;
    }
}

// The answer acknowledges the packet that it answers. Out-of-order packets delivered after it must not be retransmitted.
TEST(Session, OutOfOrderPacketsDeliveredAfterAnAnswerAreAcknowledged) {
    Network network(5);
    int datagrams = 0;
    network.fate = [&] { return datagrams++ == 0 ? Fate::lost : Fate::arrives; };
    int delivered = 0;
    network.ends[1]->on_packet = [&](Session&, const packet::Header&, const std::byte*) {
        if (delivered++ == 0) network.send(1, 0, 8);
    };
    for (uint64_t number = 0; number < 5; ++number) ASSERT_TRUE(network.send(0, number, 1200));
    network.run_until(network.now + kSecond);
    EXPECT_EQ(delivered, 5);
    EXPECT_TRUE(network.session(0).idle());
    EXPECT_TRUE(network.session(1).idle());
}

// As in the test before, and the second acknowledgement, for the packets delivered after the answer, is lost. The sender knows that
// everything arrived, but not all is acknowledged.
TEST(Session, DeliveredOutOfOrderPacketsNeedNoSecondAcknowledgement) {
    Network network(5);
    int delivered = 0, datagrams = 0, lost = 0;
    uint64_t answers = 0;
    network.fate = [&] {
        const bool answer = std::exchange(answers, network.ends[1]->datagrams) != network.ends[1]->datagrams;
        if (datagrams++ > 0 && !(answer && delivered == 5 && lost == 0)) return Fate::arrives;
        lost += answer;
        return Fate::lost;
    };
    network.ends[1]->on_packet = [&](Session&, const packet::Header&, const std::byte*) {
        if (delivered++ == 0) network.send(1, 0, 8);
    };
    for (uint64_t number = 0; number < 5; ++number) ASSERT_TRUE(network.send(0, number, 1200));
    network.run_until(network.now + kSecond);
    EXPECT_EQ(delivered, 5);
    EXPECT_EQ(lost, 1);
    EXPECT_TRUE(network.session(0).idle());
    EXPECT_TRUE(network.session(1).idle());
}

TEST(Session, NothingIsRetransmittedWithoutLoss) {
    Network network(4);
    Exchange exchange(network, 20'000, 5000);
    ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
    for (const auto& end : network.ends) {
        EXPECT_EQ(end->counters.repeated, 0u);
        EXPECT_EQ(end->counters.duplicates, 0u);
        EXPECT_EQ(end->counters.timeouts, 0u);
    }
}

TEST(Session, SmallWaitingPacketsShareDatagrams) {
    Network network(5);
    Exchange exchange(network, 10'000, 8, false);
    ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
    EXPECT_LT(network.ends[0]->datagrams, 1000u);
}

TEST(Session, AShrinkingPathMtuIsFollowed) {
    for (const uint32_t mtu : {1400u, 1280u, 1000u, 576u}) {
        Network network(mtu);
        Exchange exchange(network, 2000, 4000);
        while (exchange.got[1] < 500) {
            exchange.fill();
            ASSERT_TRUE(network.step());
        }
        network.mtu[0] = mtu;
        ASSERT_TRUE(exchange.run(kSteps)) << mtu;
        EXPECT_LE(network.session(0).path(0).datagram + 28, mtu);
    }
}

TEST(Session, AnMtuBlackHoleIsDetected) {
    for (const uint32_t mtu : {1400u, 576u}) {
        Network network(mtu);
        network.black_hole[0] = mtu;
        // Only some datagrams are too long for the path, as in practice.
        Exchange exchange(network, 500, 4000);
        ASSERT_TRUE(exchange.run(100'000)) << mtu << ": " << exchange.state();
        EXPECT_LE(network.session(0).path(0).datagram + 28, mtu);
    }
}

// One message at a time, shorter than the second datagram size that the session tries, but too long for the path to the peer's host.
TEST(Session, DatagramsOverThePathMtuAreShortened) {
    struct Case {
        uint32_t ours, theirs, bytes;
    };
    for (const Case& one : {Case{9000, 1500, 1400}, Case{9000, 1500, 2500}, Case{9000, 1500, 3800}, Case{1500, 700, 1000}}) {
        Network network(one.bytes);
        network.mtu[0] = one.ours;
        network.set_rails(0, 1);
        network.black_hole[0] = one.theirs;
        uint64_t arrived = 0;
        network.ends[1]->on_packet = [&](Session&, const packet::Header&, const std::byte*) { ++arrived; };
        for (uint64_t number = 0; number < 10; ++number) {
            ASSERT_TRUE(network.send(0, number, one.bytes));
            for (int steps = 0; arrived == number && steps < 10'000; ++steps) ASSERT_TRUE(network.step());
            ASSERT_EQ(arrived, number + 1) << one.bytes;
        }
        EXPECT_LE(network.session(0).path(0).datagram + 28, one.theirs) << one.bytes;
    }
}

TEST(Session, BothRailsShareTheLoad) {
    Network network(6);
    for (int i = 0; i < 2; ++i) network.set_rails(i, 2);
    Exchange exchange(network, 5000, 20'000, false);
    ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
    EXPECT_GT(network.session(0).path(0).next_order, 1000u);
    EXPECT_GT(network.session(0).path(1).next_order, 1000u);
}

TEST(Session, FailoverFromADeadRailAndBack) {
    for (int dying = 0; dying < 2; ++dying) {
        Network network(7);
        for (int i = 0; i < 2; ++i) network.set_rails(i, 2);
        Exchange exchange(network, 30'000, 3000);
        const auto run_to = [&](uint64_t count) {
            while (exchange.got[1] < count || exchange.got[0] < count) {
                exchange.fill();
                if (!network.step()) return false;
            }
            return true;
        };
        ASSERT_TRUE(run_to(5000));
        network.rail_dead[dying] = true;
        const uint64_t died = network.now;
        ASSERT_TRUE(run_to(20'000));
        EXPECT_LT(network.now - died, 2 * kSecond);
        network.run_until(network.now + kSecond);
        network.rail_dead[dying] = false;
        network.run_until(network.now + kSecond);
        EXPECT_FALSE(network.session(0).path(dying).suspended);
        ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
        EXPECT_EQ(network.ends[0]->given_up + network.ends[1]->given_up, 0);
    }
}

TEST(Session, FailoverFromARemovedRailLosesNothing) {
    Network network(8);
    for (int i = 0; i < 2; ++i) network.set_rails(i, 2);
    Exchange exchange(network, 10'000, 3000);
    for (uint64_t round = 0; exchange.got[1] < 9'000; ++round) {
        exchange.fill();
        ASSERT_TRUE(network.step());
        if (round % 2000 == 500) network.session(round / 2000 % 2 == 0).remove_path(round / 4000 % 2 == 0);
        if (round % 2000 == 1500)
            for (int i = 0; i < 2; ++i) network.set_rails(i, 2);
    }
    ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
}

TEST(Session, ARefusingKernelIsRetriedWithBackoff) {
    for (const SendResult why : {SendResult::busy, SendResult::closed, SendResult::too_long}) {
        Network network(15);
        for (int i = 0; i < 2; ++i) network.set_rails(i, 2);
        Exchange exchange(network, 3000, 3000);
        while (exchange.got[1] < 500) {
            exchange.fill();
            ASSERT_TRUE(network.step());
        }
        for (const int rails : {1, 2}) {
            // Both rails share a socket and its buffer, so a busy socket blocks both.
            if (why == SendResult::busy && rails == 1) continue;
            for (int i = 0; i < rails; ++i) network.refuses[i] = why;
            exchange.fill();
            const uint64_t end = network.now + 500 * kMillisecond;
            while (network.now < end && network.refusals < 100'000 && !exchange.complete()) {
                network.step();
                exchange.fill();
            }
            EXPECT_LT(network.refusals, 5000u) << static_cast<int>(why) << " " << rails;
            EXPECT_TRUE(rails == 2 || exchange.complete()) << "the datagrams use the other rail";
            for (int i = 0; i < rails; ++i) network.refuses[i] = SendResult::done;
            if (rails == 1) {
                exchange.got[0] = exchange.got[1] = exchange.sent[0] = exchange.sent[1] = 0;
                exchange.fill();
            }
        }
        EXPECT_TRUE(exchange.run(kSteps)) << static_cast<int>(why) << ": " << exchange.state();
    }
}

// A refusal once carried the time at which a poll had begun. A session that waited for 1 ms from then on waited in the past, so it sent and
// was refused forever. The number of attempts must be bounded even then.
TEST(Session, ARefusalWithAnOldTimeIsRetriedWithBackoff) {
    for (const SendResult why : {SendResult::busy, SendResult::closed, SendResult::too_long}) {
        Network network(15);
        network.now = kSecond;
        network.refusal_age = 5 * kMillisecond;
        network.refuses[0] = why;
        ASSERT_TRUE(network.send(0, 1, 100));
        EXPECT_LT(network.refusals, 20u) << static_cast<int>(why);
        network.refuses[0] = SendResult::done;
        network.run_until(2 * kSecond);
        EXPECT_TRUE(network.session(0).idle()) << static_cast<int>(why);
    }
}

TEST(Session, WithoutRailsThePeerIsUnreachableAfterTheTimeout) {
    Network network(9);
    for (int i = 0; i < 2; ++i) network.set_rails(i, 2);
    Exchange exchange(network, 1'000'000, 3000);
    while (exchange.got[1] < 1000) {
        exchange.fill();
        ASSERT_TRUE(network.step());
    }
    network.rail_dead[0] = network.rail_dead[1] = true;
    const uint64_t died = network.now;
    network.run_until(died + network.ends[0]->timeout - kSecond);
    EXPECT_EQ(network.ends[0]->given_up, 0);
    EXPECT_GE(network.session(0).stalled_since(), died);
    network.run_until(died + network.ends[0]->timeout + kSecond);
    EXPECT_EQ(network.ends[0]->given_up, 1);
    EXPECT_EQ(network.ends[1]->given_up, 1);
    EXPECT_TRUE(network.session(0).idle());
    EXPECT_FALSE(network.send(0, 0, 8));
    EXPECT_EQ(network.session(0).deadline(), UINT64_MAX) << "nothing may be left that wakes the process";
}

TEST(Session, APeerThatSendsButDoesNotReceiveTimesOut) {
    for (const bool both_ways : {false, true})
        for (const bool looks : {false, true})
            for (const int deaf : {0, 1}) {
                Network network(14);
                network.deaf[deaf] = true;
                Exchange exchange(network, 100, 1000, both_ways);
                // The daemons confirm that both processes live, and perhaps that both poll their sockets.
                for (int i = 0; i < 40; ++i) {
                    exchange.fill();
                    network.run_until(network.now + kSecond);
                    for (int end = 0; end < 2; ++end) network.session(end).confirm_alive(network.now, looks);
                }
                // The end that still receives notices the failure: it waits for an acknowledgement, or receives the same datagrams again
                // and again. For the deaf end, the peer seems to compute, unless the daemon knows that the peer polls.
                const bool noticed = both_ways || deaf == 0 || looks;
                EXPECT_EQ(network.ends[1 - deaf]->given_up, noticed ? 1 : 0) << both_ways << looks << deaf;
                EXPECT_TRUE(!noticed || network.session(1 - deaf).failure() == SessionFailure::unreachable);
            }
}

TEST(Session, APeerThatPollsRarelyDoesNotTimeOut) {
    Network network(16);
    Exchange exchange(network, 100, 1000, false);
    // The peer computes for long, polls for a moment in which little of the data reaches it, and computes again.
    for (int i = 0; i < 20; ++i) {
        network.ends[1]->listening = false;
        exchange.fill();
        for (int second = 0; second < 40; ++second) {
            network.run_until(network.now + kSecond);
            network.session(0).confirm_alive(network.now, false);
        }
        network.listen(1);
        network.session(0).confirm_alive(network.now, true);
        network.run_until(network.now + kMillisecond);
        network.session(0).confirm_alive(network.now, true);
    }
    EXPECT_EQ(network.ends[0]->given_up, 0);
}

// The peer has our acknowledgement in its socket while it computes, and repeats the datagram before it reads it.
TEST(Session, APeerThatRetransmitsAfterComputingDoesNotTimeOut) {
    Network network(18);
    int datagrams = 0;
    network.fate = [&datagrams] { return datagrams++ == 0 ? Fate::doubled : Fate::arrives; };
    ASSERT_TRUE(network.send(0, 0, 100));
    network.ends[0]->listening = false;
    const uint64_t timeout = network.ends[1]->timeout, begin = network.now;
    network.run_until(begin + timeout - kMillisecond);
    ASSERT_EQ(network.ends[1]->counters.duplicates, 1u);
    network.session(0).on_timer(network.now);
    network.run_until(network.now + kMillisecond / 2);
    network.listen(0);
    network.run_until(begin + 3 * timeout);
    EXPECT_EQ(network.ends[1]->counters.duplicates, 2u);
    EXPECT_EQ(network.ends[1]->given_up, 0);
}

// The peer has our data in its socket while it computes, and sends before it reads them.
TEST(Session, APeerThatSendsAfterComputingDoesNotTimeOut) {
    for (const bool looks : {false, true}) {
        Network network(19);
        network.ends[1]->listening = false;
        ASSERT_TRUE(network.send(0, 0, 100));
        const uint64_t timeout = network.ends[0]->timeout, begin = network.now;
        network.session(0).confirm_alive(begin, true);
        while (network.now < begin + timeout - kMillisecond) {
            network.session(0).confirm_alive(network.now, false);
            network.run_until(std::min(network.now + kSecond, begin + timeout - kMillisecond));
        }
        if (looks)
            network.session(0).confirm_alive(network.now, true);
        else
            ASSERT_TRUE(network.send(1, 0, 100));
        network.run_until(begin + timeout + kMillisecond);
        EXPECT_EQ(network.ends[0]->given_up, 0);
        network.listen(1);
        network.run_until(begin + 3 * timeout);
        EXPECT_TRUE(network.session(0).idle());
        EXPECT_EQ(network.ends[0]->given_up, 0);
    }
}

// A loss must have no effect on the failure detection after a pause: two processes on a bad network that exchange a few messages from time to
// time never give each other up.
TEST(Session, APairWithPausesDoesNotTimeOut) {
    Network network(17);
    network.weather = {.lost = 30, .doubled = 10, .jitter = 200 * kMicrosecond};
    uint64_t number[2] = {};
    for (int round = 0; round < 20'000; ++round) {
        for (int from = 0; from < 2; ++from)
            for (uint64_t left = network.random() % 3; left > 0; --left) ASSERT_TRUE(network.send(from, number[from]++, 100));
        // Often the next message follows when the timeout since the last one is about to pass.
        const uint64_t soon = network.random() % (100 * kMillisecond);
        const uint64_t pause = network.random() % 2 ? network.ends[0]->timeout - soon : network.random() % kSecond;
        network.run_until(network.now + pause);
        ASSERT_EQ(network.ends[0]->given_up + network.ends[1]->given_up, 0) << "round " << round;
    }
}

TEST(Session, KeepalivesOfTheDaemonKeepAComputingPeerAlive) {
    Network network(10);
    Exchange exchange(network, 50'000, 3000, false);
    while (exchange.got[1] < 1000) {
        exchange.fill();
        ASSERT_TRUE(network.step());
    }
    network.ends[1]->listening = false;
    network.run_until(network.now + kSecond);
    const uint64_t before = network.ends[0]->datagrams;
    exchange.fill();
    // For ten minutes the peer's daemon confirms every second that the peer lives.
    for (int i = 0; i < 600; ++i) {
        network.run_until(network.now + kSecond);
        network.session(0).confirm_alive(network.now, false);
    }
    EXPECT_EQ(network.ends[0]->given_up, 0);
    EXPECT_FALSE(network.send(0, exchange.sent[0], 3000)) << "the buffer is full, and memory bounded";
    EXPECT_LT(network.ends[0]->datagrams - before, 600 * 3 + 1000) << "an idle peer gets a datagram only now and then";
    network.listen(1);
    const uint64_t awake = network.now;
    ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
    EXPECT_LT(network.now - awake, kSecond);
}

TEST(Session, AFullWindowHasRoomAgainAfterAcknowledgements) {
    Network network(11);
    uint64_t sent = 0;
    network.ends[1]->listening = false;
    while (network.send(0, sent, 1000)) ++sent;
    EXPECT_LE(sent * packet_bytes(1000), network.ends[0]->window);
    EXPECT_GT(sent * packet_bytes(1000), network.ends[0]->window - 2 * packet_bytes(1000));
    EXPECT_FALSE(network.session(0).fetch_room_made());
    network.listen(1);
    while (!network.session(0).fetch_room_made()) ASSERT_TRUE(network.step());
    EXPECT_TRUE(network.send(0, sent, 1000));
}

TEST(Session, ASuccessorsEpochDistinguishesItFromThePeer) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
        Network network(seed);
        network.weather.jitter = 300 * kMicrosecond;
        Exchange exchange(network, 1'000'000, 2000);
        while (exchange.got[1] < 100 + seed * 10) {
            exchange.fill();
            ASSERT_TRUE(network.step());
        }
        // The peer dies meanwhile, and a successor takes its name while the old one's datagrams are still in transit.
        network.make(1);
        uint64_t got = 0;
        bool spoilt = false;
        const auto expect_in_turn = [&](Session&, const packet::Header& header, const std::byte*) {
            spoilt |= header.message.context != 5'000'000 + got++;
        };
        network.ends[1]->on_packet = expect_in_turn;
        uint64_t sent = 0;
        if (seed % 2 == 0) network.send(1, 1, 8);  // either the successor sends first, or its peer does
        while (network.ends[0]->given_up == 0) ASSERT_TRUE(network.step());
        network.session(0).revive(101, network.ends[0]->receiver(), nullptr);
        network.ends[0]->on_packet = [](Session&, const packet::Header&, const std::byte*) {};
        while (got < 200) {
            while (sent < 200 && network.send(0, 5'000'000 + sent, 500)) ++sent;
            ASSERT_TRUE(network.step());
            // The successor may have accepted datagrams for its predecessor; then it reports that.
            if (network.ends[1]->given_up > 0) break;
        }
        EXPECT_FALSE(spoilt) << "seed " << seed;
    }
}

TEST(Session, FailoverFromABrokenConnectionLosesNothing) {
    for (uint64_t seed = 0; seed < 100; ++seed) {
        Network network(seed);
        network.weather.lost = static_cast<int>(seed % 3) * 5;
        Exchange exchange(network, 3000, seed % 2 ? kMaxPayload : 2000);
        std::vector<std::unique_ptr<PipePair>> connections;
        std::mt19937_64 random(seed);
        for (uint64_t step = 0; !exchange.complete(); ++step) {
            ASSERT_LT(step, 5'000'000u) << "seed " << seed;
            exchange.fill();
            ASSERT_TRUE(network.step()) << "seed " << seed << ": " << exchange.state();
            ASSERT_FALSE(exchange.failed) << "seed " << seed;
            const bool open = !connections.empty() && connections.back()->ends[0].alive;
            if (random() % 500 != 0) continue;
            if (open)
                connections.back()->die();
            else
                connections.push_back(std::make_unique<PipePair>(network));
        }
        EXPECT_FALSE(network.undecodable);
    }
}

TEST(Session, OverAConnectionAcknowledgementsAreRare) {
    Network network(12);
    PipePair connection(network);
    Exchange exchange(network, 20'000, 8, false);
    ASSERT_TRUE(exchange.run(kSteps)) << exchange.state();
    EXPECT_EQ(network.ends[0]->datagrams, 0u);
    EXPECT_LT(network.ends[1]->datagrams + connection.ends[1].frames, 100u);
    EXPECT_LE(connection.ends[0].longest, connection.ends[0].frame_limit());
}

TEST(Session, SingleShortPacketsUseDatagramsBesideAConnection) {
    Network network(13);
    Exchange before(network, 10, 8);  // traffic before, so that the path is known to work
    ASSERT_TRUE(before.run(kSteps));
    PipePair connection(network);
    const auto run = [&](uint64_t first, uint64_t count, uint32_t bytes) {
        const uint64_t datagrams = network.ends[0]->datagrams, frames = connection.ends[0].frames;
        uint64_t answered = 0;
        network.ends[1]->on_packet = [&](Session&, const packet::Header& header, const std::byte*) {
            EXPECT_TRUE(network.send(1, header.message.context, 8));
        };
        network.ends[0]->on_packet = [&](Session&, const packet::Header&, const std::byte*) { ++answered; };
        for (uint64_t i = 0; i < count; ++i) {
            EXPECT_TRUE(network.send(0, first + i, bytes));
            while (answered <= i) EXPECT_TRUE(network.step());
        }
        return std::make_pair(network.ends[0]->datagrams - datagrams, connection.ends[0].frames - frames);
    };
    const auto small = run(100, 50, 8);
    EXPECT_GE(small.first, 50u);
    EXPECT_EQ(small.second, 0u);
    const auto large = run(200, 50, 20'000);
    EXPECT_GE(large.second, 50u);
    // A lost datagram is retransmitted as a datagram. After several without an acknowledgement, the connection carries everything.
    network.weather.lost = 30;
    const auto lossy = run(300, 300, 8);
    EXPECT_GT(lossy.first, 0u);
    EXPECT_GT(lossy.second, 0u);
}

// All faults at once: the seed draws each next event. In the end all faults end, and everything must arrive.
TEST(Session, AnyTemporaryFaultIsSurvived) {
    uint64_t unfinished = 0;
    for (uint64_t seed = 0; seed < kTroubles; ++seed) {
        Network network(seed);
        std::mt19937_64 random(seed + 12345);
        for (int i = 0; i < 2; ++i) network.set_rails(i, 1 + static_cast<int>(seed % 3));
        network.weather = {static_cast<int>(random() % 20), 3, 20 * kMicrosecond, random() % (200 * kMicrosecond) + 1};
        Exchange exchange(network, 6000, seed % 4 == 0 ? kMaxPayload : 3000);
        std::vector<std::unique_ptr<PipePair>> pipes;
        const auto trouble = [&] {
            const auto rail = static_cast<int>(random() % (1 + seed % 3));
            const auto end = static_cast<int>(random() % 2);
            switch (random() % 8) {
                case 0:
                    network.rail_dead[rail] = !network.rail_dead[rail];
                    break;
                case 1:
                    network.refuses[rail] = static_cast<SendResult>(random() % 4);
                    break;
                case 2:
                    network.refuses[rail] = SendResult::done;
                    break;
                case 3:
                    network.session(end).remove_path(rail);
                    break;
                case 4:
                    network.set_rails(end, 1 + static_cast<int>(seed % 3));
                    break;
                case 5:
                    network.mtu[rail] = random() % 2 ? 1500 : 1000;
                    break;
                case 6:
                    if (network.ends[end]->listening)
                        network.ends[end]->listening = false;
                    else
                        network.listen(end);
                    break;
                case 7:
                    if (!pipes.empty() && pipes.back()->ends[0].alive)
                        pipes.back()->die();
                    else if (seed % 2 == 0)
                        pipes.push_back(std::make_unique<PipePair>(network));
                    break;
            }
        };
        for (int i = 0; i < 60; ++i) {
            trouble();
            exchange.fill();
            network.run_until(network.now + random() % (random() % 10 == 0 ? 3 * kSecond : 10 * kMillisecond));
            for (int end = 0; end < 2; ++end) network.session(end).confirm_alive(network.now, network.ends[1 - end]->listening);
        }
        unfinished += !exchange.complete();
        for (int rail = 0; rail < kMaxAddresses; ++rail) {
            network.rail_dead[rail] = false;
            network.refuses[rail] = SendResult::done;
        }
        for (int end = 0; end < 2; ++end) {
            network.set_rails(end, 1 + static_cast<int>(seed % 3));
            network.listen(end);
        }
        ASSERT_TRUE(exchange.run(3'000'000)) << "seed " << seed << ": " << exchange.state();
        ASSERT_FALSE(network.undecodable);
    }
    EXPECT_GT(unfinished, kTroubles / 4) << "most faults occurred after all messages had arrived, so they tested nothing";
}

TEST(Session, ABrokenStreamEndsTheSession) {
    Network network(13);
    network.send(0, 1, 8);
    network.step();
    std::vector<uint64_t> frame(sizeof(DatagramHeader) / 8 + 4);
    auto& header = *reinterpret_cast<DatagramHeader*>(frame.data());
    header = {};
    header.magic = DatagramHeader::kMagic;
    header.version = DatagramHeader::kVersion;
    header.bytes = static_cast<uint32_t>(frame.size() * 8);
    header.epoch = network.session(0).epoch();
    header.offset = 40;
    auto& packet = *reinterpret_cast<packet::Header*>(frame.data() + sizeof header / 8);
    packet.bytes = kMaxPayload + 1;
    Datagram datagram;
    ASSERT_TRUE(decode(reinterpret_cast<const std::byte*>(frame.data()), header.bytes, datagram));
    EXPECT_FALSE(network.session(1).receive(datagram, 0, nullptr, network.now));
    EXPECT_TRUE(network.session(1).dead());
    EXPECT_EQ(network.ends[1]->given_up, 1);
}

TEST(Session, AnIdleSessionIsSmall) { EXPECT_LE(sizeof(Session), 2048u); }

}  // namespace
}  // namespace starling::network
