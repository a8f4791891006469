// Direct rings over RC (transport/network/rdma/rdma_ring.h): short frames are written into memory that the receiver polls, in one order
// with all other frames of the connection. Under any failure, undelivered frames were not reported as delivered.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/config.h"
#include "rc_sides.h"
#include "transport/network/rdma/rc_connection.h"
#include "transport/network/rdma/rdma_ring.h"

namespace starling::network {
namespace {

/// Sets STARLING_MAX_DIRECT and STARLING_WAIT to the given values.
void set(const char* most, const char* wait) {
    setenv("STARLING_MAX_DIRECT", most, 1);
    setenv("STARLING_WAIT", wait, 1);
    read_config(false);
}

/// The parameter is the value of STARLING_WAIT, by which the ring's owner waits.
class RcRingTest : public RcPair, public testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        set("2", GetParam());
        open();
    }
    void TearDown() override { set("16", "adaptive"); }
    static std::string text(int number, size_t bytes = 8) {
        std::string made = std::to_string(number) + ":";
        made.resize(std::max(bytes, made.size()), static_cast<char>('a' + number % 26));
        return made;
    }
    uint64_t by_ring() const { return a.rc->counters().frames_by_ring; }
};
INSTANTIATE_TEST_SUITE_P(Waits, RcRingTest, testing::Values("poll", "adaptive"),
                         [](auto& info) { return std::string(info.param); });

TEST_P(RcRingTest, ShortFramesAreWritten) {
    EXPECT_EQ(a.rc->rings(), 1u);
    EXPECT_EQ(b.rc->rings(), 1u);
    const uint64_t frames = fabric.frames;
    ASSERT_EQ(a.send("one"), SendResult::done);
    EXPECT_EQ(by_ring(), 1u);
    a.port.run();
    const bool noted = !b.port.events.empty();
    EXPECT_EQ(noted, std::string(GetParam()) == "adaptive");  // a receiver that may sleep is woken by an event
    b.port.events.clear();
    EXPECT_TRUE(b.rc->poll_rings());
    EXPECT_EQ(b.frames, std::vector<std::string>{"one"});
    EXPECT_FALSE(b.rc->poll_rings());
    EXPECT_EQ(fabric.frames, frames);
}

TEST_P(RcRingTest, FramesOfAllLengthsWrapAroundTheRing) {
    std::vector<std::string> sent;
    for (int i = 0; i < 1000; ++i) {
        sent.push_back(text(i, static_cast<size_t>(i * 37 % 1500)));
        ASSERT_EQ(a.send(sent.back()), SendResult::done);
        run();
    }
    EXPECT_EQ(b.frames, sent);
    EXPECT_GT(by_ring(), 700u);
    EXPECT_LT(by_ring(), 1000u);  // some frames were longer than a ring's slot, and used the queue pair
    EXPECT_EQ(a.broken + b.broken, 0);
}

TEST_P(RcRingTest, AFullRingFallsBackToTheQueueInOrder) {
    fabric.depth = 200;
    std::vector<std::string> sent;
    for (int i = 0; i < 100; ++i) {
        sent.push_back(text(i));
        ASSERT_EQ(a.send(sent.back()), SendResult::done);
    }
    EXPECT_EQ(by_ring(), RcRing::kSlots);
    run();
    EXPECT_EQ(b.frames, sent);
    // After it was drained, the ring is used again.
    for (int i = 0; i < 10; ++i) ASSERT_EQ(a.send(text(i)), SendResult::done);
    EXPECT_GT(by_ring(), RcRing::kSlots);
    run();
    EXPECT_EQ(b.frames.size(), 110u);
}

// A kilobyte fits into a slot of the ring, with the headers of its packet and of its session.
TEST_P(RcRingTest, AMessageOfAKilobyteFits) {
    ASSERT_EQ(a.send(text(1, 1024 + sizeof(packet::Header) + sizeof(DatagramHeader))), SendResult::done);
    EXPECT_EQ(by_ring(), 1u);
}

// The receiver polls the ring and the queue at arbitrary times.
TEST_P(RcRingTest, RingAndQueueKeepOneOrderHoweverTheyArePolled) {
    fabric.depth = 64;
    std::vector<std::string> sent;
    int number = 0;
    for (int round = 0; round < 200; ++round) {
        for (int i = 0; i < round % 9; ++i, ++number) {
            sent.push_back(text(number, number % 3 ? 8 : 2000));
            if (a.send(sent.back()) != SendResult::done) sent.pop_back();
        }
        for (int i = 0; i < round % 5; ++i) a.port.step(*a.port.queues[0]);
        if (round % 3 == 0) (void)b.rc->poll_rings();
        if (round % 4 == 0) b.poll();
        if (round % 7 == 0) run();
    }
    run();
    EXPECT_EQ(b.frames, sent);
    EXPECT_GT(by_ring(), 100u);
}

TEST_P(RcRingTest, CreditsArePiggybackedInBothDirections) {
    std::vector<std::string> sent;
    const uint64_t frames = fabric.frames;
    for (int i = 0; i < 500; ++i) {
        sent.push_back(text(i));
        ASSERT_EQ(a.send(sent.back()), SendResult::done);
        run();
        ASSERT_EQ(b.send(sent.back()), SendResult::done);
        run();
    }
    EXPECT_EQ(a.frames, sent);
    EXPECT_EQ(b.frames, sent);
    EXPECT_EQ(fabric.frames, frames);  // the queue pair has carried no frames
    EXPECT_EQ(by_ring(), 500u);
}

// The device reads data that is too long for inline sends from the ring's mirror, also when a queue pair lingers after its close.
TEST_P(RcRingTest, TheMirrorStaysUntilTheDeviceHasSentFromIt) {
    b.rc->finish(*b.connection);
    run();
    ASSERT_EQ(a.ended, 1);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(a.send(text(i, 500)), SendResult::done);
    ASSERT_EQ(by_ring(), 3u);
    a.rc->finish(*a.connection);
    a.rc->drop(*a.connection);
    for (int i = 0; i < 3; ++i) a.poll();
    run();
    EXPECT_EQ(b.frames, (std::vector{text(0, 500), text(1, 500), text(2, 500)}));
    EXPECT_EQ(b.ended, 1);
    EXPECT_EQ(b.broken, 0);
    EXPECT_EQ(a.queues(), 0u);
}

TEST_P(RcRingTest, TheClosingFrameArrivesAfterTheRingsFrames) {
    fabric.depth = 64;
    for (int i = 0; i < 20; ++i) ASSERT_EQ(a.send(text(i)), SendResult::done);
    a.rc->finish(*a.connection);
    size_t before_end = 0;
    b.on_frame = [&](Connection&) { before_end += b.ended == 0; };
    run();
    EXPECT_EQ(before_end, 20u);
    EXPECT_EQ(b.ended, 1);
    b.rc->finish(*b.connection);
    b.rc->drop(*b.connection);
    b.connect();
    run();
    EXPECT_EQ(a.ended, 1);
    EXPECT_EQ(b.rc->rings(), 0u);
    EXPECT_EQ(b.port.registered, 0u);
}

TEST_P(RcRingTest, ABrokenQueueReleasesItsRings) {
    fabric.depth = 64;
    for (int i = 0; i < 20; ++i) ASSERT_EQ(a.send(text(i)), SendResult::done);
    for (int i = 0; i < 7; ++i) a.port.step(*a.port.queues[0]);
    a.port.queues[0]->break_now();
    run();
    EXPECT_EQ(a.broken, 1);
    EXPECT_EQ(b.broken, 1);
    EXPECT_LE(b.frames.size(), 7u);  // the session retransmits the other frames, by their numbers, on another path
    for (size_t i = 0; i < b.frames.size(); ++i) EXPECT_EQ(b.frames[i], text(static_cast<int>(i)));
    EXPECT_EQ(a.send("late"), SendResult::closed);
    EXPECT_EQ(a.rc->rings() + b.rc->rings(), 0u);
    EXPECT_EQ(a.port.registered + b.port.registered, 0u);
    a.rc->drop(*a.connection), b.rc->drop(*b.connection);
    a.connect(), b.connect();
    open();
    ASSERT_EQ(a.send("anew"), SendResult::done);
    run();
    EXPECT_EQ(b.frames.back(), "anew");
}

TEST_P(RcRingTest, DroppedWhileAFrameOfTheRingIsDelivered) {
    ASSERT_EQ(a.send(text(1)), SendResult::done);
    ASSERT_EQ(a.send(text(2)), SendResult::done);
    b.on_frame = [&](Connection& c) {
        b.rc->drop(c);
        b.on_frame = nullptr;
    };
    a.port.run();
    (void)b.rc->poll_rings();
    EXPECT_EQ(b.frames, std::vector<std::string>{text(1)});
    b.connect();
    run();
    EXPECT_EQ(b.port.registered, 0u);
    EXPECT_EQ(a.broken, 1);
}

TEST_P(RcRingTest, MalformedFramesInTheRingBreakTheConnection) {
    ASSERT_EQ(a.send("garbage"), SendResult::done);
    run();
    EXPECT_TRUE(!a.is_open() && !b.is_open());
}

TEST_P(RcRingTest, WithoutRegistrationAllFramesUseTheQueue) {
    a.rc->drop(*a.connection), b.rc->drop(*b.connection);
    a.connect(), b.connect();
    run();
    for (Side* poor : {&a, &b}) {
        SCOPED_TRACE(poor == &a ? "the writer's" : "the owner's");
        poor->port.refuse_memory = true;
        open();
        b.frames.clear();
        for (int i = 0; i < 100; ++i) {
            ASSERT_EQ(a.send(text(i)), SendResult::done);
            run();
        }
        EXPECT_EQ(b.frames.size(), 100u);
        EXPECT_EQ(by_ring(), 0u);
        EXPECT_EQ(poor->rc->rings(), 0u);
        EXPECT_EQ(a.rc->rings() + b.rc->rings(), 0u);  // a ring that the peer cannot write to was released
        poor->port.refuse_memory = false;
        a.rc->drop(*a.connection), b.rc->drop(*b.connection);
        a.connect(), b.connect();
        run();
    }
}

TEST_P(RcRingTest, ClosedPortsAreNotUsed) {
    ASSERT_EQ(a.send(text(1)), SendResult::done);
    b.rc->lose_port(b.port, true);
    EXPECT_EQ(b.port.registered, 0u);
    a.rc->lose_port(a.port, true);
    EXPECT_EQ(a.port.registered, 0u);
    run();
    EXPECT_EQ(a.broken + b.broken, 2);
}

/// Returns a frame of the longest length whose words all differ.
std::vector<std::byte> counted_frame() {
    std::vector<std::byte> frame(RcRing::kMost + 8);
    for (size_t i = 0; i < frame.size(); ++i) frame[i] = static_cast<std::byte>(i * 7 + i / 256);
    return frame;
}

// Both ends of a connection compute the check, and they may belong to different releases: the word-by-word formula must not change.
TEST(RcRingCheck, EqualsTheWordByWordFormulaForAllLengths) {
    const std::vector<std::byte> frame = counted_frame();
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    for (uint32_t bytes = 0; bytes <= RcRing::kMost; ++bytes) {
        const RcSlotEnd end{bytes * 3, 5, bytes, 0, 0, 7};
        uint64_t sums[] = {end.after, end.consumed, end.bytes, end.stamp};
        for (size_t i = 0; i < (bytes + 7) / 8; ++i) {
            uint64_t word;
            std::memcpy(&word, frame.data() + 8 * i, sizeof word);
            sums[i % 4] = (sums[i % 4] ^ word) * kFactor;
        }
        uint64_t all = 0;
        for (const uint64_t sum : sums) all = (all ^ sum ^ sum >> 32) * kFactor;
        ASSERT_EQ(RcRing::check_of(frame.data(), end), all >> 32) << bytes << " bytes";
    }
}

TEST(RcRingCheck, DiffersIfAnyWordOfTheFrameHasNotArrived) {
    const std::vector<std::byte> frame = counted_frame();
    for (uint32_t bytes = 1; bytes <= RcRing::kMost; bytes += 13) {
        const RcSlotEnd end{1, 2, bytes, 0, 0, 3};
        const uint32_t whole = RcRing::check_of(frame.data(), end);
        for (size_t at = 0; at < (bytes + 7) / 8 * 8; at += 8) {
            std::vector<std::byte> torn = frame;
            std::memset(torn.data() + at, 0, 8);
            ASSERT_NE(RcRing::check_of(torn.data(), end), whole) << bytes << " bytes without the word at " << at;
        }
    }
}

/// One owner of rings with more peers than rings.
class RcRingPlaces : public testing::Test {
  protected:
    static constexpr int kPeers = 3;
    void TearDown() override { set("16", "adaptive"); }
    struct Peer {
        Side side;
        Connection* at_hub;
        Peer(verbs::queues::Fabric& fabric, uint8_t id) : side(fabric, id), at_hub(nullptr) {}
    };
    void make() {
        hub_ = std::make_unique<Side>(fabric_, 1);
        for (int i = 0; i < kPeers; ++i) {
            Peer& peer = *peers_.emplace_back(std::make_unique<Peer>(fabric_, static_cast<uint8_t>(i + 2)));
            if (i > 0) hub_->connect();
            peer.at_hub = hub_->connection;
            ASSERT_EQ(hub_->use(packet::PacketKind::open, peer.side.describe(packet::PacketKind::open)), MPI_SUCCESS);
            ASSERT_EQ(peer.side.use(packet::PacketKind::accept, hub_->describe(packet::PacketKind::accept)), MPI_SUCCESS);
            run();
            ASSERT_TRUE(peer.side.is_open());
        }
    }
    void run() {
        for (bool any = true; any;) {
            any = hub_->port.run() | hub_->poll();
            for (auto& peer : peers_) any |= peer->side.port.run() | peer->side.poll();
        }
    }
    /// Sends `count` frames; returns how many used the ring.
    uint64_t send(int from, int count) {
        Side& side = peers_[static_cast<size_t>(from)]->side;
        const uint64_t before = side.rc->counters().frames_by_ring;
        for (int i = 0; i < count; ++i) {
            EXPECT_EQ(side.send(std::to_string(from) + "/" + std::to_string(sent_[from]++)), SendResult::done);
            run();
        }
        return side.rc->counters().frames_by_ring - before;
    }
    void expect_all() {
        int next[kPeers] = {};
        for (const std::string& frame : hub_->frames) {
            const int from = frame[0] - '0';
            EXPECT_EQ(frame.substr(2), std::to_string(next[from]++));
        }
        for (int i = 0; i < kPeers; ++i) EXPECT_EQ(next[i], sent_[i]);
    }
    verbs::queues::Fabric fabric_;
    std::unique_ptr<Side> hub_;
    std::vector<std::unique_ptr<Peer>> peers_;
    int sent_[kPeers] = {};
};

TEST_F(RcRingPlaces, NoRingIsGrantedIfTheLimitIsZero) {
    set("0", "poll");
    make();
    EXPECT_EQ(hub_->rc->rings(), 0u);
    EXPECT_EQ(send(0, 600), 0u);
    expect_all();
}

TEST_F(RcRingPlaces, ABusierPeerReplacesAnIdleRing) {
    set("2", "poll");
    make();
    EXPECT_EQ(hub_->rc->rings(), 2u);
    const uint64_t held = hub_->port.registered;
    EXPECT_EQ(send(0, 100), 100u);
    EXPECT_EQ(send(1, 10), 10u);
    EXPECT_EQ(send(2, 10), 0u);
    EXPECT_GT(send(2, 1000), 600u);  // peer 2's traffic has earned it the ring of peer 1
    EXPECT_EQ(hub_->rc->rings(), 2u);
    EXPECT_LE(hub_->port.registered, held + RcRing::kBytes);
    EXPECT_EQ(send(1, 4), 0u);
    EXPECT_EQ(send(0, 10), 10u);
    // The ring moves back to peer 1.
    EXPECT_GT(send(1, 3000), 1000u);
    expect_all();
}

TEST_F(RcRingPlaces, AStaticPlanKeepsTheFirstRings) {
    setenv("STARLING_PLAN", "static", 1);
    set("2", "poll");
    make();
    EXPECT_EQ(send(0, 100), 100u);
    EXPECT_EQ(send(1, 10), 10u);
    EXPECT_EQ(send(2, 3000), 0u);
    EXPECT_EQ(send(1, 10), 10u);
    expect_all();
    setenv("STARLING_PLAN", "demand", 1);
}

TEST_F(RcRingPlaces, APlannedPeerHasARingBeforeItEarnsOne) {
    set("2", "poll");
    make();
    const auto set_expected_traffic = [&](int peer, uint32_t messages) {
        hub_->rc->set_expected_traffic(static_cast<RcConnection&>(*peers_[static_cast<size_t>(peer)]->at_hub), messages);
        run();
    };
    EXPECT_EQ(send(0, 100) + send(1, 10), 110u);
    set_expected_traffic(2, 50);
    EXPECT_EQ(send(2, 10), 10u);  // all frames use the ring, from the first on
    EXPECT_EQ(send(0, 10), 10u);
    EXPECT_EQ(send(1, 10), 0u);  // peer 1 had the least traffic, so it lost its ring
    // Peers 0 and 1 compete only for the other ring, because the plan assigns one ring to peer 2.
    EXPECT_EQ(send(0, 10), 10u);
    EXPECT_GT(send(1, 3000), 1000u);
    EXPECT_EQ(send(0, 10), 0u);
    EXPECT_EQ(send(2, 10), 10u);
    // Among peers with expected traffic, the one with more gets the ring.
    set_expected_traffic(1, 40);
    set_expected_traffic(0, 30);
    EXPECT_EQ(send(0, 10), 0u);
    set_expected_traffic(0, 60);
    EXPECT_EQ(send(0, 10), 10u);
    EXPECT_EQ(send(1, 10), 0u);
    // The next plan expects traffic with peer 1 alone.
    set_expected_traffic(2, 0), set_expected_traffic(0, 0);
    set_expected_traffic(1, 70);
    EXPECT_EQ(send(1, 10), 10u);
    EXPECT_EQ(hub_->rc->rings(), 2u);
    expect_all();
}

TEST_F(RcRingPlaces, APlannedConnectionOpensWithARing) {
    set("2", "poll");
    make();
    hub_->rc->set_expected_traffic(static_cast<RcConnection&>(*peers_[2]->at_hub), 10);
    run();
    EXPECT_EQ(send(2, 10), 10u);
    Peer& late = *peers_.emplace_back(std::make_unique<Peer>(fabric_, static_cast<uint8_t>(9)));
    hub_->connect();
    late.at_hub = hub_->connection;
    hub_->rc->set_expected_traffic(static_cast<RcConnection&>(*late.at_hub), 20);
    ASSERT_EQ(hub_->use(packet::PacketKind::open, late.side.describe(packet::PacketKind::open)), MPI_SUCCESS);
    ASSERT_EQ(late.side.use(packet::PacketKind::accept, hub_->describe(packet::PacketKind::accept)), MPI_SUCCESS);
    run();
    EXPECT_EQ(hub_->rc->rings(), 2u);
    const uint64_t before = late.side.rc->counters().frames_by_ring;
    EXPECT_EQ(late.side.send("first"), SendResult::done);
    run();
    EXPECT_EQ(late.side.rc->counters().frames_by_ring - before, 1u);
    EXPECT_EQ(send(2, 10), 10u);
}

TEST_F(RcRingPlaces, AFreedRingIsUsedByAnotherPeer) {
    set("2", "poll");
    make();
    EXPECT_EQ(send(2, 100), 0u);
    hub_->rc->drop(*peers_[0]->at_hub);
    run();
    EXPECT_GT(send(2, 100), 80u);
    EXPECT_EQ(hub_->rc->rings(), 2u);
}

}  // namespace
}  // namespace starling::network
