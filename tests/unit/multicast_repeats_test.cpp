// Repeat requests in multicast: missing fragments are requested until they arrive, but no more often than they can arrive.
#include <gtest/gtest.h>

#include <vector>

#include "base/counter_start.h"
#include "multicast/incoming.h"
#include "multicast/outgoing.h"

namespace starling::multicast {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kPiece = 100;

/// Receives the stream of one sender, as datagrams that the test makes.
struct Receiver {
    ReceiveQueue desk;
    Incoming incoming{desk, 7, 1};
    MulticastReceive receive;
    std::vector<std::byte> memory;
    uint64_t bytes, now = 1000 * kMs;

    explicit Receiver(uint64_t fragments) : memory(fragments * kPiece), bytes(Fragmentation{0, kPiece}.offset(fragments)) {
        receive.memory = memory.data(), receive.bytes = bytes;
        desk.post(receive, {7, 5, 1, 1});
    }
    void data(uint32_t fragment) {
        const std::byte body[kPiece] = {};
        const GroupDatagramHeader head{GroupDatagramHeader::kMagic,
                                       GroupDatagramHeader::kVersion,
                                       Word::data,
                                       1,
                                       0,
                                       9,
                                       0,
                                       0,
                                       fragment,
                                       kPiece,
                                       5,
                                       1,
                                       bytes};
        EXPECT_TRUE(incoming.handle({head, body, Fragmentation{bytes, kPiece}.length(fragment)}, now));
    }
    void heartbeat(uint32_t sent) {
        const GroupDatagramHeader head{
            GroupDatagramHeader::kMagic, GroupDatagramHeader::kVersion, Word::heartbeat, 1, 0, 9, 1, 0, sent, 0, 0, 0, 0};
        EXPECT_TRUE(incoming.handle({head, nullptr, 0}, now));
    }
    /// Returns the fragments requested until the time `until`, one entry per request.
    std::vector<uint32_t> asked(uint64_t until) {
        std::vector<uint32_t> all;
        while (incoming.deadline() <= until) {
            now = std::max(now, incoming.deadline());
            incoming.request(now, [&](const Missing& missing) {
                for (uint32_t bit = 0; bit < 64; ++bit)
                    if (missing.mask >> bit & 1) all.push_back(missing.fragment + bit);
            });
        }
        now = std::max(now, until);
        return all;
    }
};

TEST(MulticastRetransmission, MissingFragmentsAreRequestedAfterADuplicate) {
    Receiver receiver(214);
    for (uint32_t i = 0; i < 43; ++i) receiver.data(i);
    receiver.heartbeat(43);
    EXPECT_TRUE(receiver.asked(receiver.now).empty());
    receiver.data(42);
    receiver.heartbeat(61);
    const auto asked = receiver.asked(receiver.now + kMs);
    ASSERT_EQ(asked.size(), 18u);
    EXPECT_EQ(asked.front(), 43u);
    EXPECT_EQ(asked.back(), 60u);
}

TEST(MulticastRetransmission, MissingFragmentsAreRequestedRepeatedly) {
    for (const bool unknown : {false, true}) {
        Receiver receiver(100);
        if (unknown) receiver.heartbeat(3), receiver.asked(receiver.now + kMs);
        receiver.data(16);
        receiver.heartbeat(90);
        std::vector<int> times(100);
        for (const uint32_t fragment : receiver.asked(receiver.now + 2000 * kMs)) ++times[fragment];
        for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(times[i] > 3, i < 90 && i != 16) << i;
    }
}

// Duplicates of retransmitted fragments must not cause new requests: each request would cause more duplicates.
TEST(MulticastRetransmission, DuplicatesCauseNoRetransmissionRequests) {
    Receiver receiver(100);
    for (uint32_t i = 0; i < 100; ++i)
        if (i < 40 || i > 60) receiver.data(i);
    EXPECT_EQ(receiver.asked(receiver.now + kMs).size(), 21u);
    size_t asked = 0;
    for (int i = 0; i < 1000; ++i) {
        receiver.data(3), receiver.data(99);
        asked += receiver.asked(receiver.now + kMs).size();
    }
    EXPECT_LT(asked, 21u * 15);
    EXPECT_GT(asked, 21u * 3);
}

// Retransmitted fragments arrive in order, as a session delivers them. While they arrive, the missing ones are still in transit.
TEST(MulticastRetransmission, WhileRetransmissionsArriveTheRestIsNotRequestedAgain) {
    Receiver receiver(100);
    for (uint32_t i = 64; i < 100; ++i) receiver.data(i);
    size_t asked = receiver.asked(receiver.now + kMs).size();
    for (uint32_t i = 0; i < 64; ++i) {
        receiver.data(i);
        asked += receiver.asked(receiver.now + kMs).size();
    }
    EXPECT_EQ(asked, 64u);
    EXPECT_TRUE(receiver.receive.done);
}

// Fragments without the message's description cannot be placed before a description has arrived.
TEST(MulticastRetransmission, FragmentsBeforeTheFirstDescriptionAreRequestedAgain) {
    Receiver receiver(40);
    for (uint32_t i = 1; i < 40; ++i) receiver.data(i);  // fragment 0 is lost, fragment 16 has the next description
    const auto asked = receiver.asked(receiver.now + kMs);
    ASSERT_EQ(asked.size(), 16u);
    EXPECT_EQ(asked.front(), 0u);
    EXPECT_EQ(asked.back(), 15u);
    for (const uint32_t fragment : asked) receiver.data(fragment);
    EXPECT_TRUE(receiver.receive.done);
}

struct Sent final : GroupTransmitter {
    std::vector<uint32_t> group, single;
    int heartbeats = 0;
    std::vector<bool> full = std::vector<bool>(4);
    bool to_group(const GroupDatagramHeader& head, const std::byte*, uint32_t) override {
        if (head.word == Word::data) group.push_back(head.fragment);
        heartbeats += head.word == Word::heartbeat;
        return true;
    }
    bool to_member(uint32_t member, const GroupDatagramHeader& head, const std::byte*, uint32_t) override {
        if (full[member]) return false;
        single.push_back(head.fragment);
        return true;
    }
    void flush() override {}
    void report_unreachable() override {}
};

struct Sender {
    Sent wire;
    Outgoing outgoing{0, 1, kPiece};
    std::vector<std::byte> data = std::vector<std::byte>(Fragmentation{0, kPiece}.offset(40));
    MulticastSend send;
    uint64_t now = 1000 * kMs;
    Sender() {
        outgoing.start(send, 5, 1, data.data(), data.size(), now);
        outgoing.run(wire, now);
        EXPECT_EQ(wire.group.size(), 40u);
        wire.group.clear();
    }
    void miss(uint16_t who, bool urgent) { outgoing.missed({kCounterStart, 10, 0xff, urgent}, who, now); }
    void run(uint64_t ns) { outgoing.run(wire, now += ns); }
};

TEST(MulticastRetransmission, RetransmissionsThroughASessionAreSentOnce) {
    Sender sender;
    for (int i = 0; i < 50; ++i) sender.miss(2, i > 2), sender.run(kMs);
    EXPECT_EQ(sender.wire.single.size(), 8u);
    sender.run(200 * kMs);
    sender.miss(2, true), sender.run(kMs);  // member 2 had no memory for the fragments when they arrived
    EXPECT_EQ(sender.wire.single.size(), 16u);
    EXPECT_TRUE(sender.wire.group.empty());
}

TEST(MulticastRetransmission, AMemberWithoutRoomDelaysNoOther) {
    Sender sender;
    sender.wire.full[1] = true;
    for (int i = 0; i < 1000; ++i) sender.miss(1, true);
    sender.miss(2, true);
    sender.run(kMs);
    EXPECT_EQ(sender.wire.single.size(), 8u);
    EXPECT_EQ(sender.outgoing.deadline(), 0u);
    sender.wire.full[1] = false;
    sender.run(kMs);
    EXPECT_EQ(sender.wire.single.size(), 16u);
}

/// Sends one-byte messages, one per `gap`. Every eighth is acknowledged, together with all before it.
struct Flow {
    Sent wire;
    Outgoing outgoing{0, 1, kPiece};
    uint64_t now = 1000 * kMs;
    uint32_t next = 0;
    void message() {
        MulticastSend send;
        const std::byte one{};
        outgoing.start(send, 5, next++, &one, 1, now);
        EXPECT_TRUE(send.done);
        run();
        if (next % 8 == 0) outgoing.acknowledged({kCounterStart + next, 0}, now);
    }
    void run() { outgoing.run(wire, now); }
    void messages(int count, uint64_t gap) {
        for (; count > 0; --count) {
            message();
            for (const uint64_t until = now + gap; now < until; now += kMs) run();
        }
    }
};

TEST(MulticastRetransmission, TheNextMessageReplacesAHeartbeat) {
    Flow flow;
    flow.messages(200, 20 * kMs);
    flow.wire.heartbeats = 0;
    flow.messages(200, 20 * kMs);
    EXPECT_EQ(flow.wire.heartbeats, 0);
    // Send a last message, after which only the heartbeat shows a receiver that it misses something.
    flow.message();
    const uint64_t last = flow.now;
    while (flow.wire.heartbeats == 0) {
        flow.now += kMs, flow.run();
        ASSERT_LT(flow.now, last + 60 * kMs);
    }
    EXPECT_GE(flow.now, last + 30 * kMs);
    // After a loss the heartbeat interval is that of rare messages, which is shorter.
    flow.outgoing.missed({kCounterStart + flow.next - 1, 0, 1, false}, 2, flow.now);
    flow.wire.heartbeats = 0;
    flow.messages(4, 20 * kMs);
    EXPECT_GT(flow.wire.heartbeats, 8);
}

TEST(MulticastRetransmission, WaitingForAcknowledgementsHastensTheHeartbeat) {
    Flow flow;
    flow.messages(401, 20 * kMs);
    flow.wire.heartbeats = 0;
    EXPECT_TRUE(flow.outgoing.request_acks(flow.now));
    EXPECT_EQ(flow.outgoing.deadline(), flow.now);
    flow.run();
    EXPECT_EQ(flow.wire.heartbeats, 1);
    EXPECT_FALSE(flow.outgoing.request_acks(flow.now)) << "already requested";
    flow.now += 2 * kMs, flow.run();
    EXPECT_EQ(flow.wire.heartbeats, 2);
    // The next messages are acknowledged, so no acknowledgement is awaited and the heartbeats stop.
    flow.wire.heartbeats = 0;
    flow.messages(8, 20 * kMs);
    EXPECT_EQ(flow.wire.heartbeats, 0);
}

}  // namespace
}  // namespace starling::multicast
