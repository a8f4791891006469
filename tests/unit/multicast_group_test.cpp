// Multicast groups on a network that loses, duplicates and reorders datagrams: every message arrives once and whole, and slow, late or dead
// members delay no other.
#include "multicast/group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "multicast_world.h"

namespace starling::multicast::testing {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

void make_ready(World& world) {
    for (const auto& one : world.all) one->group.apply(GroupEvent::want, world.now);
    ASSERT_TRUE(world.run_until([&] { return world.all_ready(); }, 10 * kSecond));
}

std::vector<std::byte> data_of(uint64_t call, uint64_t bytes) {
    std::vector<std::byte> data(bytes);
    uint64_t x = call * 0x9e3779b97f4a7c15u + bytes;
    for (std::byte& one : data) one = std::byte((x = x * 6364136223846793005u + 1442695040888963407u) >> 56);
    return data;
}

bool all_absent(const World& world) {
    for (const auto& one : world.all)
        if (!one->dead && one->group.state() != GroupState::absent) return false;
    return true;
}

std::string states(const World& world) {
    std::string all;
    for (const auto& one : world.all) all += std::string(" ") + (one->dead ? "dead" : name_of(one->group.state()));
    return all;
}

/// Sends one message from `sender` to all other living members; returns whether it arrived whole.
bool broadcast(World& world, uint32_t sender, uint64_t call, uint64_t bytes) {
    const auto data = data_of(call, bytes);
    MulticastSend send;
    std::deque<MulticastReceive> receives(world.size());
    std::vector<std::vector<std::byte>> memory(world.size(), std::vector<std::byte>(bytes));
    if (!world.run_until([&] { return world[sender].group.may_send(bytes); }, 10 * kSecond)) return false;
    for (uint32_t i = 0; i < world.size(); ++i) {
        if (i == sender || world[i].dead) continue;
        receives[i].memory = memory[i].data(), receives[i].bytes = bytes;
        world[i].desk.post(receives[i], world[i].label(sender, 5, call));
    }
    world[sender].group.start(send, 5, call, data.data(), bytes, world.now);
    const auto all = [&] {
        for (uint32_t i = 0; i < world.size(); ++i)
            if (i != sender && !world[i].dead && !receives[i].done) return false;
        return send.done;
    };
    if (!world.run_until(all, 60 * kSecond)) return false;
    for (uint32_t i = 0; i < world.size(); ++i)
        if (i != sender && !world[i].dead && (memory[i] != data || receives[i].outcome.error != MPI_SUCCESS)) return false;
    return true;
}

TEST(MulticastGroup, BecomesReadyWhateverIsLost) {
    for (uint32_t members : {2u, 3u, 9u, 40u})
        for (uint32_t seed = 1; seed <= 20; ++seed) {
            World world(members, {.loss = 0.3, .twice = 0.1, .late_ns = 500'000}, seed);
            make_ready(world);
            ASSERT_TRUE(broadcast(world, seed % members, 1, 1000)) << members << " members, seed " << seed;
        }
}

TEST(MulticastGroup, DeliversMessagesOfAnyLengthFromAnyMember) {
    World world(9, {.loss = 0.1, .twice = 0.1, .late_ns = 400'000}, 3);
    make_ready(world);
    uint64_t call = 0;
    for (uint64_t bytes : {0u, 1u, 231u, 232u, 233u, 256u, 4071u, 4072u, 4073u, 65536u, 65537u, 300'000u})
        for (uint32_t sender : {0u, 4u, 8u})
            ASSERT_TRUE(broadcast(world, sender, ++call, bytes)) << bytes << " from " << sender;
}

TEST(MulticastGroup, SendsOneDatagramPerMessageWithoutLoss) {
    World world(32, {}, 1);
    make_ready(world);
    const uint64_t before = world.datagrams, notes = world.notes;
    for (uint64_t call = 1; call <= 100; ++call) ASSERT_TRUE(broadcast(world, 0, call, 200));
    EXPECT_EQ(world.datagrams - before, 100u);
    EXPECT_LT(world.notes - notes, 31u * 100 / 4);
    EXPECT_EQ(world.singles, 0u);
}

// A million messages with 30 % loss, from all members at once, into receives posted in advance: none is lost, duplicated or changed.
TEST(MulticastGroup, AMillionMessagesAtThirtyPercentLossAreRetransmitted) {
    World world(4, {.loss = 0.3, .twice = 0.05, .late_ns = 200'000, .latency_ns = 5'000}, 11);
    make_ready(world);
    constexpr uint64_t kMessages = 1'000'000 / 4, kAhead = 100;
    struct Slot {
        MulticastReceive receive;
        uint64_t value = 0;
    };
    struct Stream {
        uint64_t sent = 0;
        std::deque<MulticastSend> sends;
        struct At {
            uint64_t posted = 0, taken = 0;
            std::deque<Slot> slots;
        } at[4];
    } streams[4];
    uint64_t received = 0;
    const auto work = [&] {
        for (uint32_t sender = 0; sender < 4; ++sender) {
            Stream& stream = streams[sender];
            for (; stream.sent < kMessages && world[sender].group.may_send(8); ++stream.sent) {
                const uint64_t value = stream.sent * 31 + sender;
                MulticastSend send;
                world[sender].group.start(send, 5, stream.sent, &value, sizeof value, world.now);
                ASSERT_TRUE(send.done);
            }
            for (uint32_t i = 0; i < 4; ++i) {
                if (i == sender) continue;
                Stream::At& at = stream.at[i];
                while (!at.slots.empty() && at.slots.front().receive.done) {
                    ASSERT_EQ(at.slots.front().value, at.taken * 31 + sender);
                    ASSERT_EQ(at.slots.front().receive.outcome.bytes, 8u);
                    at.slots.pop_front();
                    ++at.taken;
                    ++received;
                }
                for (; at.posted < kMessages && at.posted < at.taken + kAhead; ++at.posted) {
                    Slot& slot = at.slots.emplace_back();
                    slot.receive.memory = reinterpret_cast<std::byte*>(&slot.value), slot.receive.bytes = 8;
                    world[i].desk.post(slot.receive, world[i].label(sender, 5, at.posted));
                }
            }
        }
    };
    while (received < kMessages * 4 * 3) {
        ASSERT_NO_FATAL_FAILURE(work());
        ASSERT_TRUE(world.step());
        ASSERT_LT(world.now, 20'000 * kSecond);
    }
    ASSERT_TRUE(world.run_until(
        [&] {
            for (const auto& one : world.all)
                if (!one->group.outgoing().drained()) return false;
            return true;
        },
        100 * kSecond));
    for (const auto& one : world.all) EXPECT_EQ(one->desk.waiting(), 0u);
}

TEST(MulticastGroup, AMemberThatReceivesNoMulticastGetsUnicastRetransmissions) {
    World world(9, {}, 1);
    make_ready(world);
    world[3].deaf = true;
    ASSERT_TRUE(broadcast(world, 0, 1, 3000));
    ASSERT_TRUE(world.run_until([&] { return world[0].group.outgoing().drained(); }, 60 * kSecond));
}

TEST(MulticastGroup, IsAbandonedIfTheNetworkCarriesNothing) {
    World world(5, {.loss = 1}, 1);
    for (const auto& one : world.all) one->group.apply(GroupEvent::want, world.now);
    ASSERT_TRUE(world.run_until([&] { return all_absent(world); }, 10 * kSecond));
    for (const auto& one : world.all) EXPECT_FALSE(one->in_network);
}

// Any member may be unreachable, or reachable only by short datagrams. It may be the leader, which tests the group.
TEST(MulticastGroup, IsAbandonedIfAnyMemberIsUnreachable) {
    for (uint32_t members : {2u, 3u, 9u})
        for (uint32_t who = 0; who < members; ++who)
            for (const bool some : {false, true}) {
                World world(members, {.loss = 0.1}, who + 1);
                if (some)
                    world[who].longest = 200;
                else
                    world[who].deaf = true;
                for (const auto& one : world.all) one->group.apply(GroupEvent::want, world.now);
                ASSERT_TRUE(world.run_until([&] { return all_absent(world); }, 10 * kSecond)) << who << states(world);
                EXPECT_TRUE(world[0].group.leads() && world[0].group.was_silent());
            }
}

// The network stops carrying group datagrams, to one member or from one. Messages already sent arrive, and no more are sent to the group.
TEST(MulticastGroup, IsAbandonedIfDatagramsStopArriving) {
    for (const bool mute : {false, true})
        for (uint32_t who : {0u, 1u, 6u}) {
            World world(9, {.loss = 0.05}, who + 1);
            make_ready(world);
            for (uint64_t call = 1; call <= 20; ++call) ASSERT_TRUE(broadcast(world, call % 9, call, 700));
            (mute ? world[who].mute : world[who].deaf) = true;
            uint64_t call = 20;
            while (world.all_ready() && call < 1000) {
                ++call;
                ASSERT_TRUE(broadcast(world, mute ? who : (who + 1) % 9, call, 700)) << call;
                world.run_until([] { return false; }, 1'000'000);
            }
            EXPECT_LT(call, 100u);
            ASSERT_TRUE(world.run_until([&] { return all_absent(world); }, 10 * kSecond)) << who << states(world);
            uint32_t deaf = 0;
            for (const auto& one : world.all) deaf += one->group.is_unreachable();
            EXPECT_GE(deaf, 1u);
            EXPECT_EQ(world[who].group.is_unreachable(), !mute);
        }
}

/// Broadcasts from each member in turn, for `ns` nanoseconds of simulated time.
void broadcasts_for(World& world, uint64_t ns, uint64_t& call) {
    for (const uint64_t end = world.now + ns; world.now < end;) {
        ++call;
        ASSERT_TRUE(broadcast(world, call % world.size(), call, 700)) << call << states(world);
        world.run_until([] { return false; }, 100'000);
    }
}

// One of two rails fails during traffic, to a member or from it. Sessions choose their rails separately, and may switch late. The group
// moves to the other rail, and stays there.
TEST(MulticastGroup, FailoverToTheWorkingRail) {
    for (const bool mute : {false, true})
        for (uint32_t who : {0u, 1u, 6u})
            for (const uint64_t slow : {0u, 30'000'000u, 200'000'000u}) {
                World world(9, {.loss = 0.05}, who + 1);
                make_ready(world);
                uint64_t call = 0;
                broadcasts_for(world, kSecond / 50, call);
                const int rail = world[who].rail;
                (mute ? world[who].mute_rail : world[who].deaf_rail) = rail;
                world[who].slow_ns = slow;
                world.later(kSecond / 2, [&] { world[who].slow_ns = 0; });
                broadcasts_for(world, 2 * kSecond, call);
                world.weather.loss = 0;
                broadcasts_for(world, kSecond / 10, call);
                const uint64_t singles = world.singles, datagrams = world.datagrams;
                broadcasts_for(world, kSecond / 10, call);
                EXPECT_TRUE(world.all_ready()) << who << states(world);
                EXPECT_EQ(world.singles, singles) << mute << who << slow;
                EXPECT_GT(world.datagrams, datagrams);
            }
}

TEST(MulticastGroup, BecomesReadyOnTheWorkingRail) {
    for (const bool mute : {false, true})
        for (uint32_t members : {2u, 3u, 9u})
            for (uint32_t who = 0; who < members; ++who) {
                World world(members, {.loss = 0.1}, who + 1);
                (mute ? world[who].mute_rail : world[who].deaf_rail) = 0;
                make_ready(world);
            }
}

// A third of the datagrams is lost and retransmitted: the group is not considered dead.
TEST(MulticastGroup, IsKeptDespiteLoss) {
    World world(9, {.loss = 0.3, .twice = 0.1, .late_ns = 300'000}, 4);
    make_ready(world);
    for (uint64_t call = 1; call <= 2000; ++call) ASSERT_TRUE(broadcast(world, call % 9, call, 1 + call % 3000));
    for (const auto& one : world.all) EXPECT_FALSE(one->group.is_unreachable());
    EXPECT_TRUE(world.all_ready());
}

TEST(MulticastGroup, ARefusedJoinLeavesAllOnPointToPoint) {
    World world(5, {}, 1);
    world[2].refuses = true;
    for (const auto& one : world.all) one->group.apply(GroupEvent::want, world.now);
    ASSERT_TRUE(world.run_until([&] { return world[0].group.state() == GroupState::absent; }, 10 * kSecond));
}

TEST(MulticastGroup, LateJoinersAreAwaited) {
    World world(9, {.loss = 0.2}, 5);
    for (uint32_t i = 0; i < 9; ++i)
        if (i != 4) world[i].group.apply(GroupEvent::want, world.now);
    world.run_until([&] { return false; }, 100'000'000);
    EXPECT_FALSE(world[0].group.may_send(1));
    world[4].group.apply(GroupEvent::want, world.now);
    ASSERT_TRUE(world.run_until([&] { return world.all_ready(); }, 10 * kSecond));
}

TEST(MulticastGroup, SentMessagesArriveThoughAMemberAbandonsTheGroup) {
    for (uint32_t who : {0u, 1u, 8u}) {
        World world(9, {.loss = 0.1}, 5 + who);
        make_ready(world);
        MulticastSend send;
        const auto data = data_of(1, 20'000);
        world[4].group.start(send, 5, 1, data.data(), data.size(), world.now);
        world[who].group.apply(GroupEvent::abandoned, world.now);
        std::deque<MulticastReceive> receives(9);
        std::vector<std::vector<std::byte>> memory(9, std::vector<std::byte>(20'000));
        for (uint32_t i = 0; i < 9; ++i)
            if (i != 4) {
                receives[i].memory = memory[i].data(), receives[i].bytes = 20'000;
                world[i].desk.post(receives[i], world[i].label(4, 5, 1));
            }
        ASSERT_TRUE(world.run_until(
            [&] {
                for (uint32_t i = 0; i < 9; ++i)
                    if (world[i].group.state() != GroupState::absent || (i != 4 && !receives[i].done)) return false;
                return true;
            },
            60 * kSecond))
            << who;
        for (uint32_t i = 0; i < 9; ++i)
            if (i != 4) { EXPECT_EQ(memory[i], data); }
        // The group can be created again.
        make_ready(world);
        ASSERT_TRUE(broadcast(world, 2, 7, 500));
    }
}

// Any member dies at any moment after the first join: the others become or stay ready, and their messages arrive.
TEST(MulticastGroup, MembersAndLeadersDieInEveryState) {
    for (uint32_t seed = 1; seed <= 300; ++seed) {
        World world(9, {.loss = 0.2, .late_ns = 100'000}, seed);
        std::vector<uint32_t> order{0, 1, static_cast<uint32_t>(2 + seed % 7)};
        for (uint32_t i = 0; i < 9; ++i)
            world.later(world.up_to(3'000'000), [&, i] {
                if (!world[i].dead) world[i].group.apply(GroupEvent::want, world.now);
            });
        const uint32_t victim = order[seed % 3];
        world.later(world.up_to(8'000'000), [&, victim] { world.kill(victim); });
        world.run_until([&] { return false; }, 50'000'000);
        ASSERT_TRUE(world.run_until([&] { return world.all_ready(); }, 10 * kSecond)) << "seed " << seed << states(world);
        ASSERT_TRUE(broadcast(world, (victim + 1) % 9, 1, 3000)) << "seed " << seed;
        ASSERT_TRUE(world.run_until([&] { return world[(victim + 1) % 9].group.outgoing().drained(); }, 60 * kSecond));
    }
}

TEST(MulticastGroup, AReceiveFromADyingMemberReturnsAnError) {
    World world(5, {}, 1);
    make_ready(world);
    MulticastReceive receive;
    std::byte memory[8];
    receive.memory = memory, receive.bytes = 8;
    world[3].desk.post(receive, world[3].label(1, 5, 1));
    world.kill(1);
    ASSERT_TRUE(world.run_until([&] { return receive.done; }, kSecond));
    EXPECT_EQ(receive.outcome.error, MPI_ERR_PROC_ABORTED);
}

TEST(MulticastGroup, ADeadMemberDelaysNoSender) {
    for (uint32_t victim = 1; victim < 9; ++victim) {
        World world(9, {.loss = 0.1}, victim);
        make_ready(world);
        world.kill(victim);
        MulticastSend send;
        const auto data = data_of(1, 200'000);  // too long to be copied: complete when all have received it
        std::deque<MulticastReceive> receives(9);
        std::vector<std::vector<std::byte>> memory(9, std::vector<std::byte>(data.size()));
        for (uint32_t i = 1; i < 9; ++i)
            if (i != victim) {
                receives[i].memory = memory[i].data(), receives[i].bytes = data.size();
                world[i].desk.post(receives[i], world[i].label(0, 5, 1));
            }
        world[0].group.start(send, 5, 1, data.data(), data.size(), world.now);
        ASSERT_TRUE(world.run_until([&] { return send.done; }, 60 * kSecond)) << victim;
        for (uint32_t i = 1; i < 9; ++i)
            if (i != victim) { ASSERT_TRUE(receives[i].done && memory[i] == data); }
    }
}

TEST(MulticastGroup, AMessageLongerThanTheWindowCompletesWhenAllReceiversHaveEnded) {
    World world(3, {}, 1);
    make_ready(world);
    MulticastSend send;
    const auto data = data_of(1, 300'000);
    // No member has posted a receive, so none acknowledges beyond the limit of stored bytes, and the sender stops with a full window.
    world[0].group.start(send, 5, 1, data.data(), data.size(), world.now);
    ASSERT_FALSE(world.run_until([&] { return send.done; }, kSecond));
    for (uint32_t member : {1u, 2u}) world.kill(member);
    EXPECT_TRUE(world.run_until([&] { return send.done; }, 10 * kSecond));
    EXPECT_TRUE(world[0].group.outgoing().drained());
}

// Unexpected messages are stored up to a limit. Beyond the limit their sender must wait, but messages of other senders still arrive.
TEST(MulticastGroup, UnexpectedMessagesHaveALimitAndBlockNoOthers) {
    World world(4, {}, 1);
    make_ready(world);
    std::deque<MulticastSend> sends;
    uint64_t call = 0;
    const auto data = data_of(0, 1000);
    const auto more = [&] {
        for (; call < 100'000 && world[0].group.may_send(1000); ++call)
            world[0].group.start(sends.emplace_back(), 5, call, data.data(), 1000, world.now);
        return call >= 100'000;
    };
    world.run_until(more, 2 * kSecond);
    EXPECT_GT(call, 100u);
    EXPECT_LT(call, 2000u);
    EXPECT_FALSE(world[0].group.may_send(1000));
    // Other senders' messages still arrive. The blocked sender continues as soon as its messages are received.
    MulticastReceive other[3];
    std::byte memory[3][8];
    uint64_t value = 5;
    MulticastSend send;
    for (uint32_t i : {0u, 2u, 3u}) {
        MulticastReceive& receive = other[i == 0 ? 0 : i - 1];
        receive.memory = memory[i == 0 ? 0 : i - 1], receive.bytes = 8;
        world[i].desk.post(receive, world[i].label(1, 6, 1));
    }
    world[1].group.start(send, 6, 1, &value, 8, world.now);
    ASSERT_TRUE(world.run_until([&] { return other[0].done && other[1].done && other[2].done; }, kSecond));
    const uint64_t sent = call;
    std::deque<MulticastReceive> receives;
    std::vector<std::byte> sink(1000);
    for (uint64_t i = 0; i < sent; ++i)
        for (uint32_t member = 1; member < 4; ++member) {
            MulticastReceive& receive = receives.emplace_back();
            receive.memory = sink.data(), receive.bytes = sink.size();
            world[member].desk.post(receive, world[member].label(0, 5, i));
        }
    ASSERT_TRUE(world.run_until(
        [&] {
            for (const MulticastReceive& receive : receives)
                if (!receive.done) return false;
            return world[0].group.outgoing().drained();
        },
        60 * kSecond));
}

TEST(MulticastGroup, AWithdrawnReceiveDiscardsItsMessage) {
    World world(3, {}, 1);
    make_ready(world);
    MulticastReceive receive;
    std::byte memory[8] = {};
    receive.memory = memory, receive.bytes = 8;
    world[1].desk.post(receive, world[1].label(0, 5, 1));
    EXPECT_TRUE(world[1].desk.withdraw(receive, world[1].label(0, 5, 1)));
    world[1].desk.forget(5);
    MulticastSend send;
    uint64_t value = 3;
    world[0].group.start(send, 6, 1, &value, 8, world.now);
    ASSERT_TRUE(world.run_until([&] { return world[1].desk.has_begun(world[1].label(0, 6, 1)); }, kSecond));
    EXPECT_FALSE(receive.done);
    MulticastReceive shorter;
    shorter.memory = memory, shorter.bytes = 4;
    world[1].desk.post(shorter, world[1].label(0, 6, 1));
    ASSERT_TRUE(shorter.done);
    EXPECT_EQ(shorter.outcome.error, MPI_ERR_TRUNCATE);
}

}  // namespace

TEST(Datagrams, FragmentsCoverAMessageAndFillDatagramsOfOneLength) {
    for (const uint32_t piece : {64u, 256u, 1400u})
        for (uint64_t bytes = 1; bytes < 40 * piece; bytes += bytes < 3 * piece ? 1 : 7) {
            const Fragmentation message{bytes, piece};
            uint64_t end = 0;
            for (uint64_t i = 0; i < message.count(); ++i) {
                ASSERT_EQ(message.offset(i), end);
                ASSERT_GT(message.length(i), 0u);
                GroupDatagramHeader head{};
                head.word = Word::data, head.fragment = static_cast<uint32_t>(i);
                const uint32_t datagram = header_bytes(head) + message.length(i);
                ASSERT_TRUE(datagram == GroupDatagramHeader::kShort + piece || i + 1 == message.count());
                end += message.length(i);
            }
            ASSERT_EQ(end, bytes);
        }
    EXPECT_EQ((Fragmentation{0, 1400}.count()), 1u);
    EXPECT_EQ((Fragmentation{0, 1400}.length(0)), 0u);
}

TEST(Datagrams, AFragmentWithoutDescriptionHasAShortHeader) {
    GroupDatagramHeader head{};
    head.magic = GroupDatagramHeader::kMagic, head.version = GroupDatagramHeader::kVersion, head.word = Word::data;
    head.fragment = 1, head.fragment_bytes = 256;
    std::byte bytes[GroupDatagramHeader::kShort + 257] = {};
    std::memcpy(bytes, &head, GroupDatagramHeader::kShort);
    GroupDatagram datagram;
    EXPECT_TRUE(decode(bytes, GroupDatagramHeader::kShort + 256, 2, datagram));
    EXPECT_EQ(datagram.bytes, 256u);
    EXPECT_EQ(datagram.head.bytes, 0u);
    EXPECT_FALSE(decode(bytes, GroupDatagramHeader::kShort + 257, 2, datagram));  // longer than its piece
    EXPECT_FALSE(decode(bytes, GroupDatagramHeader::kShort, 2, datagram));        // empty
    EXPECT_FALSE(decode(bytes, GroupDatagramHeader::kShort - 1, 2, datagram));
}

TEST(Datagrams, ATestMayHaveAnyNumber) {
    for (const uint32_t number : {1u, 0x7fffffffu, 0x80000001u, ~0u}) {
        GroupDatagramHeader head{};
        head.magic = GroupDatagramHeader::kMagic, head.version = GroupDatagramHeader::kVersion, head.word = Word::ready;
        head.serial = number;
        std::byte bytes[sizeof head];
        std::memcpy(bytes, &head, sizeof head);
        GroupDatagram datagram;
        EXPECT_TRUE(decode(bytes, sizeof bytes, 2, datagram)) << number;
    }
}

}  // namespace starling::multicast::testing
