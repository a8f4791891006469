// The verbs plugin on fake devices: the promises of its calls, and the effect of every event.
#include "plugins/verbs/plugin.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "verbs_pair.h"

namespace starling::verbs {
namespace {

using Kind = VerbsEvent::VerbsEventKind;

// Tests of the choice of ports.

class VerbsPorts : public VerbsPair {
  protected:
    /// Returns the facts of the only device.
    PortFacts facts() {
        PortFacts found[4];
        EXPECT_EQ(starling_verbs_plugin.list(found, 4, &options), 1);
        return found[0];
    }
    static bool says(const PortFacts& facts, const char* words) {
        return std::string(facts.why_not).find(words) != std::string::npos;
    }
};

TEST_F(VerbsPorts, AUsablePortIsListed) {
    fake::add({.name = "mlx5_0", .mtu = 2048});
    const PortFacts found = facts();
    EXPECT_STREQ(found.device, "mlx5_0");
    EXPECT_STREQ(found.why_not, "");
    EXPECT_TRUE(found.active && found.ethernet);
    EXPECT_EQ(found.mtu, 2048u);
    EXPECT_EQ(found.port, 1);
}

TEST_F(VerbsPorts, TheRoceV2GidWithIpv4IsChosen) {
    fake::add({.name = "d",
               .gids = {{1, "fe80::1"}, {2, "fe80::1"}, {1, "::ffff:10.1.1.1"}, {2, "::ffff:10.1.1.1"}, {2, "2001::1"}}});
    EXPECT_EQ(facts().gid_index, 3);
    options.gid_index = 4;
    EXPECT_EQ(facts().gid_index, 4);
    options.gid_index = 9;
    EXPECT_TRUE(says(facts(), "STARLING_VERBS_GID_INDEX")) << facts().why_not;
}

TEST_F(VerbsPorts, UnusablePortsAreListedWithReasonAndRemedy) {
    fake::add({.name = "d", .open_error = EACCES});
    EXPECT_TRUE(says(facts(), "/dev/infiniband/uverbs0") && says(facts(), "udev rule")) << facts().why_not;
    fake::reset();
    fake::add({.name = "d", .iwarp = true});
    EXPECT_TRUE(says(facts(), "no datagram queues")) << facts().why_not;
    fake::reset();
    fake::add({.name = "d", .shared_receive = false});
    EXPECT_TRUE(says(facts(), "no shared receive queues")) << facts().why_not;
    fake::reset();
    fake::add({.name = "d"});
    fake::set_link("d", false);
    EXPECT_TRUE(says(facts(), "ip link set")) << facts().why_not;
    EXPECT_FALSE(facts().active);
    fake::set_link("d", true);
    fake::set_gid("d", 0, "::");
    EXPECT_TRUE(says(facts(), "ip address add")) << facts().why_not;
    fake::reset();
    fake::add({.name = "d"});
    options.pkey_index = 3;
    EXPECT_TRUE(says(facts(), "STARLING_VERBS_PKEY_INDEX")) << facts().why_not;
}

TEST_F(VerbsPorts, APortWithoutDatagramsIsNotOpened) {
    fake::add({.name = "d", .datagrams = false});
    EXPECT_FALSE(open("d"));
    EXPECT_NE(said_.find("cannot create a datagram queue"), std::string::npos) << said_;
}

TEST_F(VerbsPorts, ARemovedPortIsNotOpened) {
    fake::add({.name = "d"});
    const PortFacts found = facts();
    fake::remove("d");
    char problem[200];
    EXPECT_FALSE(starling_verbs_plugin.open(&found, &options, problem, sizeof problem));
    EXPECT_NE(std::string(problem).find("there is no device d"), std::string::npos) << problem;
}

TEST_F(VerbsPorts, TheErrorNamesTheLimitOfLockedMemory) {
    fake::add({.name = "d"});
    rlimit before;
    getrlimit(RLIMIT_MEMLOCK, &before);
    rlimit small = before;
    small.rlim_cur = 65536;
    setrlimit(RLIMIT_MEMLOCK, &small);
    fake::fail_always("ibv_reg_mr", ENOMEM);
    EXPECT_FALSE(open("d"));
    setrlimit(RLIMIT_MEMLOCK, &before);
    EXPECT_NE(said_.find("65536 bytes (ulimit -l 64)"), std::string::npos) << said_;
    EXPECT_NE(said_.find("LimitMEMLOCK"), std::string::npos) << said_;
}

TEST_F(VerbsPorts, ASmallerInlineLimitIsAccepted) {
    fake::add({.name = "d", .most_inline = 100});
    a.port = open("d");
    ASSERT_TRUE(a.port) << said_;
    EXPECT_EQ(a.port->facts().inline_bytes, 64u);
}

// Datagrams

class VerbsDatagrams : public VerbsPair {
  protected:
    void SetUp() override {
        VerbsPair::SetUp();
        two_ports();
    }
};

TEST_F(VerbsDatagrams, DatagramsOfAnyLengthAndInParts) {
    for (uint32_t bytes : {0u, 1u, 192u, 193u, a.port->datagram_limit()}) {
        std::string text(bytes, 'x');
        if (bytes) text.back() = 'y';
        const iovec parts[3] = {{text.data(), bytes / 3}, {nullptr, 0}, {text.data() + bytes / 3, bytes - bytes / 3}};
        ASSERT_EQ(a.port->send(b.port->address(), parts, 3), WorkStatus::done);
        Told told;
        ASSERT_TRUE(b.next(Kind::datagram, &told));
        EXPECT_EQ(told.text, text);
        EXPECT_EQ(told.event.source_queue, a.port->address().queue);
        EXPECT_EQ(std::memcmp(told.event.gid, a.port->address().gid, 16), 0);
    }
    EXPECT_EQ(send(a.port, b.port->address(), std::string(a.port->datagram_limit() + 1, 'x')), WorkStatus::too_long);
    EXPECT_EQ(a.port->counters().datagrams_sent, 5u);
    EXPECT_EQ(b.port->counters().datagrams_received, 5u);
}

TEST_F(VerbsDatagrams, TheIpv6GidOfTheSenderIsReported) {
    fake::add({.name = "fake2", .gids = {{2, "2001::77"}}});
    Listener c;
    c.port = open("fake2");
    ASSERT_TRUE(c.port) << said_;
    ASSERT_EQ(send(c.port, b.port->address(), "six"), WorkStatus::done);
    Told told;
    ASSERT_TRUE(b.next(Kind::datagram, &told));
    EXPECT_EQ(std::memcmp(told.event.gid, c.port->address().gid, 16), 0);
    c.port->close();
}

TEST_F(VerbsDatagrams, WithoutASendBufferSendReturnsBusyThenRoomIsReported) {
    fake::hold_completions(true);
    int sent = 0;
    WorkStatus status;
    while ((status = send(a.port, b.port->address(), std::string(1000, 'x'))) == WorkStatus::done) ++sent;
    EXPECT_EQ(status, WorkStatus::busy);
    EXPECT_EQ(sent, 64);  // number of send buffers
    EXPECT_EQ(a.count(Kind::room), 0u);
    fake::hold_completions(false);
    EXPECT_TRUE(a.next(Kind::room));
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::done);
    fake::hold_completions(true);
    for (sent = 0; (status = send(a.port, b.port->address(), "x")) == WorkStatus::done; ++sent) {}
    EXPECT_EQ(status, WorkStatus::busy);
    EXPECT_LE(sent, 128);  // places
    fake::hold_completions(false);
    EXPECT_TRUE(a.next(Kind::room));
}

TEST_F(VerbsDatagrams, ShortDatagramsCauseFewCompletions) {
    for (int i = 0; i < 1000; ++i) {
        ASSERT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::done) << i;
        a.poll();
        b.poll();
    }
    EXPECT_EQ(b.count(Kind::datagram), 1000u);
}

TEST_F(VerbsDatagrams, WithoutAReceiveBufferDatagramsAreLostAndBuffersAreReposted) {
    const int count = 400;
    for (int i = 0; i < count; ++i) {
        while (send(a.port, b.port->address(), "x") == WorkStatus::busy) a.poll();
    }
    EXPECT_EQ(fake::counts().without_buffer, count - 256u);
    EXPECT_EQ(b.count(Kind::datagram), 256u);
    b.forget();
    b.port->arm();
    for (int i = 0; i < 256; ++i) {
        while (send(a.port, b.port->address(), "x") == WorkStatus::busy) a.poll();
    }
    EXPECT_EQ(b.count(Kind::datagram), 256u);
}

TEST_F(VerbsDatagrams, LostDuplicatedAndLateDatagrams) {
    fake::set({.seed = 7, .lose = 10, .twice = 10, .late = 20});
    for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(send(a.port, b.port->address(), std::to_string(i)), WorkStatus::done);
        a.poll();
        b.poll();
    }
    const fake::Counts counts = fake::counts();
    EXPECT_GT(counts.lost, 20u);
    EXPECT_GT(counts.twice, 20u);
    EXPECT_GT(counts.late, 50u);
    EXPECT_EQ(b.count(Kind::datagram), counts.datagrams - counts.lost + counts.twice);
}

TEST_F(VerbsDatagrams, AnUnreachableAddressIsNotRetriedAtOnce) {
    fake::set_reachable("::ffff:10.0.0.2", false);
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::broken);
    EXPECT_NE(std::string(a.port->problem()).find("does not reach ::ffff:10.0.0.2"), std::string::npos) << a.port->problem();
    fake::fail_call(0, 0);
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::broken);
    EXPECT_EQ(fake::calls(), 0u);
    // Datagrams to other addresses still leave.
    EXPECT_EQ(send(a.port, a.port->address(), "x"), WorkStatus::done);
    EXPECT_TRUE(a.next(Kind::datagram));
}

TEST_F(VerbsDatagrams, ABrokenDatagramQueueIsReplaced) {
    const VerbsAddress before = a.port->address();
    fake::break_queue(before.queue, IBV_WC_GENERAL_ERR);
    EXPECT_TRUE(a.next(Kind::down));
    EXPECT_TRUE(a.next(Kind::up));
    EXPECT_NE(a.port->address().queue, before.queue);
    EXPECT_EQ(send(b.port, a.port->address(), "again"), WorkStatus::done);
    EXPECT_EQ(a.next_text(Kind::datagram), "again");
    EXPECT_EQ(send(a.port, b.port->address(), "and back"), WorkStatus::done);
    EXPECT_EQ(b.next_text(Kind::datagram), "and back");
}

// Connections

class VerbsConnections : public VerbsPair {
  protected:
    void SetUp() override {
        VerbsPair::SetUp();
        two_ports();
        connect();
    }
    void expect_broken(Listener& side, Queue* queue, void* user) {
        Told told;
        ASSERT_TRUE(side.next(Kind::broken, &told));
        EXPECT_EQ(told.event.user, user);
        EXPECT_EQ(send(queue, "x"), WorkStatus::broken);
        EXPECT_EQ(side.count(Kind::broken), 0u);
    }
};

TEST_F(VerbsConnections, FramesInOrder) {
    for (uint32_t bytes : {0u, 1u, 192u, 193u, a.port->frame_limit()})
        EXPECT_EQ(send(from, std::string(bytes, 'f')), WorkStatus::done);
    for (uint32_t bytes : {0u, 1u, 192u, 193u, a.port->frame_limit()}) {
        Told told;
        ASSERT_TRUE(b.next(Kind::frame, &told));
        EXPECT_EQ(told.text, std::string(bytes, 'f'));
        EXPECT_EQ(told.event.user, &to_user);
    }
    EXPECT_EQ(send(from, std::string(a.port->frame_limit() + 1, 'x')), WorkStatus::too_long);
}

TEST_F(VerbsConnections, NoFrameIsLostWithoutAReceiveBuffer) {
    for (int i = 0; i < 600; ++i) {
        while (send(from, std::to_string(i)) == WorkStatus::busy) {
            a.poll();
            b.poll();
        }
    }
    EXPECT_GT(fake::counts().not_ready, 0u);
    for (int i = 0; i < 600; ++i) {
        a.poll();
        ASSERT_EQ(b.next_text(Kind::frame), std::to_string(i));
    }
}

TEST_F(VerbsConnections, AFullQueueReturnsBusyThenReportsRoom) {
    fake::hold_completions(true);
    int sent = 0;
    while (send(from, "x") == WorkStatus::done) ++sent;
    EXPECT_EQ(sent, 64);
    EXPECT_EQ(send(from, "x"), WorkStatus::busy);
    fake::hold_completions(false);
    Told told;
    ASSERT_TRUE(a.next(Kind::room, &told));
    EXPECT_EQ(told.event.user, &from_user);
    EXPECT_EQ(send(from, "x"), WorkStatus::done);
}

TEST_F(VerbsConnections, RoomIsReportedToAllWhenSharedSendBuffersAreFree) {
    fake::hold_completions(true);
    while (send(a.port, b.port->address(), std::string(1000, 'x')) == WorkStatus::done) {}
    EXPECT_EQ(send(from, std::string(1000, 'x')), WorkStatus::busy);
    fake::hold_completions(false);
    std::vector<void*> told_rooms;
    Told told;
    while (told_rooms.size() < 2 && a.next(Kind::room, &told)) told_rooms.push_back(told.event.user);
    EXPECT_EQ(std::count(told_rooms.begin(), told_rooms.end(), &from_user), 1);
    EXPECT_EQ(std::count(told_rooms.begin(), told_rooms.end(), nullptr), 1);
}

TEST_F(VerbsConnections, AClosedQueueReportsNoMoreEvents) {
    ASSERT_EQ(send(from, "never seen"), WorkStatus::done);
    b.port->arm();  // arm() takes the frame from the device, so close() must discard it
    to->close(false);
    EXPECT_EQ(b.count(Kind::frame), 0u);
    EXPECT_EQ(b.port->counters().queues, 0u);
    from->close(false);
}

TEST_F(VerbsConnections, AQueueClosesWithWorkOutstanding) {
    uint64_t word = 1;
    Memory memory;
    ASSERT_TRUE(a.port->enroll(&word, sizeof word, false, memory));
    to->close(false);
    ASSERT_EQ(from->read({.token = 5, .memory = &word, .local = memory.local, .bytes = 8, .address = 64, .remote = 1}),
              WorkStatus::done);
    from->close(false);
    Told told;
    ASSERT_TRUE(a.next(Kind::done, &told));
    EXPECT_EQ(told.event.token, 5u);
    EXPECT_EQ(told.event.status, WorkStatus::broken);
    EXPECT_EQ(told.event.user, nullptr);
    a.port->dismiss(memory);
}

TEST_F(VerbsConnections, AClosingQueueDeliversItsLastFrames) {
    fake::set_link("fake1", false);
    for (int i = 0; i < 20; ++i) ASSERT_EQ(send(from, std::to_string(i)), WorkStatus::done);
    from->close(true);
    EXPECT_EQ(a.port->counters().queues, 1u);
    fake::set_link("fake1", true);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(b.next_text(Kind::frame), std::to_string(i));
    a.poll();
    EXPECT_EQ(a.port->counters().queues, 0u);
    EXPECT_EQ(a.count(Kind::done), 0u);
}

TEST_F(VerbsConnections, AClosingQueueWithoutAPeerEndsToo) {
    to->close(false);
    ASSERT_EQ(send(from, "hello?"), WorkStatus::done);
    from->close(true);
    a.poll();
    EXPECT_EQ(a.port->counters().queues, 1u);
    fake::time_out();
    a.poll();
    EXPECT_EQ(a.port->counters().queues, 0u);
    EXPECT_EQ(a.count(Kind::broken), 0u);
}

TEST_F(VerbsConnections, ADeadPeerBreaksTheConnection) {
    to->close(false);
    ASSERT_EQ(send(from, "x"), WorkStatus::done);
    ASSERT_EQ(send(from, "y"), WorkStatus::done);
    fake::time_out();
    expect_broken(a, from, &from_user);
    EXPECT_NE(std::string(a.port->problem()).find("to ::ffff:10.0.0.2 broke: transport retry counter exceeded"),
              std::string::npos)
        << a.port->problem();
}

TEST_F(VerbsConnections, AnErrorEventBreaksAnIdleQueue) {
    fake::break_queue(from->address().queue, IBV_WC_GENERAL_ERR);
    expect_broken(a, from, &from_user);
}

TEST_F(VerbsConnections, AnUnreadErrorEventEndsWithItsQueue) {
    fake::break_queue(from->address().queue, IBV_WC_GENERAL_ERR);
    from->close(false);
    fake::set_link("fake0", false);
    EXPECT_TRUE(a.next(Kind::down));
    EXPECT_EQ(a.count(Kind::broken), 0u);
}

TEST_F(VerbsConnections, AQueueInErrorIsNotConnected) {
    Queue* other = a.port->make_queue(nullptr);
    ASSERT_TRUE(other);
    EXPECT_EQ(send(other, "too early"), WorkStatus::broken);
    fake::fail_always("ibv_modify_qp", EINVAL);
    EXPECT_FALSE(other->connect(to->address()));
    EXPECT_NE(std::string(a.port->problem()).find("made ready to receive"), std::string::npos) << a.port->problem();
    other->close(false);
}

TEST_F(VerbsConnections, QueuesAreCountedAndTheirLimitIsReported) {
    std::vector<Queue*> queues;
    for (int i = 0; i < 200; ++i) queues.push_back(a.port->make_queue(nullptr));
    EXPECT_EQ(a.port->counters().queues, 201u);
    for (Queue* queue : queues) {
        ASSERT_TRUE(queue);
        queue->close(false);
    }
    fake::fail_always("ibv_resize_cq", EINVAL);
    Queue* last = nullptr;
    std::vector<Queue*> some;
    for (int i = 0; i < 1000 && (last = a.port->make_queue(nullptr)); ++i) some.push_back(last);
    EXPECT_FALSE(last);
    EXPECT_NE(std::string(a.port->problem()).find("completion queue"), std::string::npos) << a.port->problem();
    for (Queue* queue : some) queue->close(false);
    fake::fail_always("ibv_resize_cq", 0);
    fake::fail_always("ibv_create_qp", ENOMEM);
    EXPECT_FALSE(a.port->make_queue(nullptr));
    EXPECT_NE(std::string(a.port->problem()).find("cannot create a queue pair"), std::string::npos) << a.port->problem();
}

// Memory

class VerbsMemory : public VerbsConnections {
  protected:
    void SetUp() override {
        VerbsConnections::SetUp();
        ASSERT_TRUE(a.port->enroll(mine, sizeof mine, false, ours));
        ASSERT_TRUE(b.port->enroll(theirs, sizeof theirs, true, shown));
    }
    void TearDown() override {
        if (a.port) a.port->dismiss(ours);
        if (b.port) b.port->dismiss(shown);
        VerbsPair::TearDown();
    }
    Queue::Transfer words(int first, int count, uint64_t token) {
        return {.token = token,
                .memory = mine + first,
                .local = ours.local,
                .bytes = static_cast<uint32_t>(count * 8),
                .address = reinterpret_cast<uint64_t>(theirs + first),
                .remote = shown.remote};
    }
    void expect_done(uint64_t token, WorkStatus status = WorkStatus::done) {
        Told told;
        ASSERT_TRUE(a.next(Kind::done, &told));
        EXPECT_EQ(told.event.token, token);
        EXPECT_EQ(told.event.status, status);
    }
    uint64_t mine[1000] = {}, theirs[1000] = {};
    Memory ours, shown;
};

TEST_F(VerbsMemory, RdmaWriteReadAndAtomics) {
    for (uint64_t i = 0; i < 1000; ++i) mine[i] = i;
    ASSERT_EQ(from->write(words(0, 1000, 1)), WorkStatus::done);
    expect_done(1);
    EXPECT_EQ(std::memcmp(mine, theirs, sizeof mine), 0);
    theirs[7] = 77;
    ASSERT_EQ(from->read(words(7, 1, 2)), WorkStatus::done);
    expect_done(2);
    EXPECT_EQ(mine[7], 77u);
    ASSERT_EQ(from->fetch_add(words(7, 1, 3), 3), WorkStatus::done);
    expect_done(3);
    EXPECT_EQ(mine[7], 77u);
    EXPECT_EQ(theirs[7], 80u);
    ASSERT_EQ(from->compare_swap(words(7, 1, 4), 80, 5), WorkStatus::done);
    expect_done(4);
    EXPECT_EQ(theirs[7], 5u);
    ASSERT_EQ(from->compare_swap(words(7, 1, 5), 80, 6), WorkStatus::done);
    expect_done(5);
    EXPECT_EQ(mine[7], 5u);
    EXPECT_EQ(theirs[7], 5u);
    EXPECT_EQ(b.count(Kind::note), 0u);
}

TEST_F(VerbsMemory, RdmaWriteWithImmediate) {
    mine[0] = 42;
    ASSERT_EQ(from->write_with_note(words(0, 1, 9), 0x12345678), WorkStatus::done);
    Told told;
    ASSERT_TRUE(b.next(Kind::note, &told));
    EXPECT_EQ(told.event.word, 0x12345678u);
    EXPECT_EQ(told.event.user, &to_user);
    EXPECT_EQ(theirs[0], 42u);
    expect_done(9);
}

TEST_F(VerbsMemory, AnRdmaWriteAndASendInOneDoorbellChain) {
    mine[0] = 42;
    const uint64_t bells = fake::counts().bells;
    Queue::Transfer one = words(0, 1, 9);
    one.more = true;
    ASSERT_EQ(from->write(one), WorkStatus::done);
    EXPECT_EQ(fake::counts().bells, bells);
    ASSERT_EQ(send(from, "there"), WorkStatus::done);
    EXPECT_EQ(fake::counts().bells, bells + 1);
    EXPECT_EQ(b.next_text(Kind::frame), "there");
    EXPECT_EQ(theirs[0], 42u);
    expect_done(9);
}

TEST_F(VerbsMemory, UnsignaledWritesInADoorbellChain) {
    const uint64_t bells = fake::counts().bells;
    for (int i = 0; i < 5; ++i) {
        uint64_t word = 100 + static_cast<uint64_t>(i);
        Queue::Transfer one = words(i, 1, 50);
        one.memory = &word;  // sent inline, because `word` is invalid when the device would read it
        one.local = 0;
        one.quiet = one.more = true;
        ASSERT_EQ(from->write(one), WorkStatus::done);
    }
    EXPECT_EQ(theirs[0], 0u);
    ASSERT_EQ(from->write(words(100, 1, 51)), WorkStatus::done);
    EXPECT_EQ(fake::counts().bells, bells + 1);
    expect_done(51);
    EXPECT_EQ(a.count(Kind::done), 0u);
    for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(theirs[i], 100 + i);
}

TEST_F(VerbsMemory, PollRingsTheDoorbellOfAnOpenChain) {
    Queue::Transfer one = words(0, 1, 1);
    mine[0] = 3;
    one.more = true;
    ASSERT_EQ(from->write(one), WorkStatus::done);
    EXPECT_EQ(theirs[0], 0u);
    expect_done(1);
    EXPECT_EQ(theirs[0], 3u);
}

TEST_F(VerbsMemory, TwoDoorbellChainsInTurn) {
    Queue* second = a.port->make_queue(nullptr);
    Queue* second_end = b.port->make_queue(nullptr);
    ASSERT_TRUE(second->connect(second_end->address()) && second_end->connect(second->address()));
    mine[0] = 1;
    mine[1] = 2;
    for (int i = 0; i < 20; ++i) {
        Queue::Transfer one = words(i % 2, 1, static_cast<uint64_t>(i));
        one.more = true;
        ASSERT_EQ((i % 2 ? second : from)->write(one), WorkStatus::done);
    }
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(a.next(Kind::done));
    EXPECT_EQ(theirs[0], 1u);
    EXPECT_EQ(theirs[1], 2u);
    second->close(false);
    second_end->close(false);
}

TEST_F(VerbsMemory, UnsignaledWritesFreeTheirQueueSlots) {
    for (int i = 0; i < 1000; ++i) {
        Queue::Transfer one = words(0, 1, 1);
        one.quiet = true;
        WorkStatus status;
        while ((status = from->write(one)) == WorkStatus::busy) a.poll();
        ASSERT_EQ(status, WorkStatus::done);
    }
    EXPECT_EQ(a.count(Kind::done), 0u);
}

TEST_F(VerbsMemory, AWrongRkeyBreaksTheQueueAndReportsUnsignaledWrites) {
    Queue::Transfer one = words(0, 100, 11);
    one.remote += 1000;
    one.quiet = true;
    ASSERT_EQ(from->write(one), WorkStatus::done);
    ASSERT_EQ(from->write(words(0, 1, 12)), WorkStatus::done);  // the queue pair is not broken yet, because b has not polled
    expect_done(11, WorkStatus::broken);
    expect_done(12, WorkStatus::broken);
    EXPECT_NE(std::string(a.port->problem()).find("remote access error (the peer's memory is not registered"),
              std::string::npos)
        << a.port->problem();
    expect_broken(a, from, &from_user);
}

TEST_F(VerbsMemory, DeregisteredMemoryIsNotWritten) {
    b.port->dismiss(shown);
    ASSERT_EQ(from->write(words(0, 100, 11)), WorkStatus::done);
    expect_done(11, WorkStatus::broken);
    EXPECT_EQ(theirs[5], 0u);
}

TEST_F(VerbsMemory, CompletionsOfDifferentQueuesInAnyOrder) {
    fake::set({.seed = 3, .mix_queues = true});
    Queue* second = a.port->make_queue(nullptr);
    Queue* second_end = b.port->make_queue(nullptr);
    ASSERT_TRUE(second->connect(second_end->address()) && second_end->connect(second->address()));
    uint64_t next[2] = {0, 0};
    for (int round = 0; round < 20; ++round) {
        for (uint64_t i = 0; i < 10; ++i) {
            ASSERT_EQ(from->write(words(0, 1, i)), WorkStatus::done);
            ASSERT_EQ(second->write(words(1, 1, 1000 + i)), WorkStatus::done);
        }
        for (int i = 0; i < 20; ++i) {
            Told told;
            ASSERT_TRUE(a.next(Kind::done, &told));
            const bool of_second = told.event.token >= 1000;
            EXPECT_EQ(told.event.token % 1000, next[of_second]++ % 10);
        }
    }
    second->close(false);
    second_end->close(false);
}

TEST_F(VerbsMemory, RegisteredBytesAreCounted) {
    const PortCounters before = a.port->counters();
    EXPECT_EQ(before.registered_bytes, before.queue_bytes + sizeof mine);
    a.port->dismiss(ours);
    EXPECT_EQ(a.port->counters().registered_bytes, before.queue_bytes);
    EXPECT_EQ(ours.handle, nullptr);
}

// Waiting

TEST_F(VerbsConnections, AnArmedPortWakesASleeper) {
    const auto readable = [&] {
        pollfd one = {b.port->wait_fd(), POLLIN, 0};
        return poll(&one, 1, 0) == 1;
    };
    ASSERT_TRUE(b.port->arm());
    ASSERT_TRUE(b.port->arm());
    EXPECT_FALSE(readable());
    ASSERT_EQ(send(a.port, b.port->address(), "up"), WorkStatus::done);
    EXPECT_TRUE(readable());
    EXPECT_EQ(b.next_text(Kind::datagram), "up");
    ASSERT_TRUE(b.port->arm());
    EXPECT_FALSE(readable());
    // Events before arm() do not make the descriptor readable.
    ASSERT_EQ(send(from, "frame"), WorkStatus::done);
    EXPECT_EQ(b.next_text(Kind::frame), "frame");
    EXPECT_TRUE(b.port->arm());
    ASSERT_EQ(send(from, "frame"), WorkStatus::done);
    fake::hold_completions(false);
    b.poll(1);
    ASSERT_EQ(send(from, "unarmed"), WorkStatus::done);
    EXPECT_FALSE(b.port->arm());
    EXPECT_EQ(b.next_text(Kind::frame), "frame");
    EXPECT_EQ(b.next_text(Kind::frame), "unarmed");
    EXPECT_TRUE(b.port->arm());
    EXPECT_FALSE(readable());
}

TEST_F(VerbsConnections, APortThatGoesDownWakesASleeper) {
    ASSERT_TRUE(b.port->arm());
    fake::set_link("fake1", false);
    pollfd one = {b.port->wait_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&one, 1, 0), 1);
}

// Events

TEST_F(VerbsConnections, LinkDownAndUp) {
    fake::set_link("fake0", false);
    ASSERT_TRUE(a.next(Kind::down));
    EXPECT_FALSE(a.port->facts().active);
    EXPECT_NE(std::string(a.port->problem()).find("link is down"), std::string::npos) << a.port->problem();
    ASSERT_EQ(send(from, "kept"), WorkStatus::done);
    fake::set_link("fake0", true);
    ASSERT_TRUE(a.next(Kind::up));
    EXPECT_TRUE(a.port->facts().active);
    // The queue pair did not break while its port was down, so the waiting frame is sent.
    EXPECT_EQ(b.next_text(Kind::frame), "kept");
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::done);
    EXPECT_EQ(b.next_text(Kind::datagram), "x");
    EXPECT_EQ(send(b.port, a.port->address(), "y"), WorkStatus::done);
    EXPECT_EQ(a.next_text(Kind::datagram), "y");
}

TEST_F(VerbsConnections, AChangedGidTakesThePortDownAndUp) {
    const VerbsAddress before = a.port->address();
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::done);
    EXPECT_TRUE(b.next(Kind::datagram));
    fake::set_gid("fake0", 0, "::ffff:10.0.0.99");
    ASSERT_TRUE(a.next(Kind::down));
    ASSERT_TRUE(a.next(Kind::up));
    EXPECT_NE(std::memcmp(before.gid, a.port->address().gid, 16), 0);
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::done);
    Told told;
    ASSERT_TRUE(b.next(Kind::datagram, &told));
    EXPECT_EQ(std::memcmp(told.event.gid, a.port->address().gid, 16), 0);
}

TEST_F(VerbsConnections, AChangeOfAnotherGidHasNoEffect) {
    fake::set_gid("fake0", 0, "::ffff:10.0.0.1");
    for (int i = 0; i < 10; ++i) a.poll();
    ASSERT_EQ(send(from, "x"), WorkStatus::done);
    EXPECT_EQ(b.next_text(Kind::frame), "x");
    EXPECT_EQ(a.count(Kind::down), 0u);
}

TEST_F(VerbsMemory, ARemovedDeviceFailsItsQueues) {
    fake::hold_completions(true);
    ASSERT_EQ(from->read(words(0, 1, 1)), WorkStatus::done);
    fake::remove("fake0");
    ASSERT_TRUE(a.next(Kind::down));
    expect_done(1, WorkStatus::broken);
    expect_broken(a, from, &from_user);
    EXPECT_NE(std::string(a.port->problem()).find("fake0 has been removed"), std::string::npos) << a.port->problem();
    EXPECT_EQ(send(a.port, b.port->address(), "x"), WorkStatus::broken);
    EXPECT_FALSE(a.port->make_queue(nullptr));
    EXPECT_FALSE(a.port->join(b.port->address().gid));
    Memory none;
    EXPECT_FALSE(a.port->enroll(mine, 8, false, none));
    EXPECT_TRUE(a.port->arm());
    from->close(false);
    EXPECT_EQ(a.port->counters().queues, 0u);
}

TEST_F(VerbsPorts, ARemovalThatTheDriverDoesNotReportIsNoticed) {
    const std::string path = testing::TempDir() + "verbs_device_" + std::to_string(getpid());
    const int file = creat(path.c_str(), 0600);
    ASSERT_GE(file, 0);
    close(file);
    fake::add({.name = "d", .path = path});
    a.port = open("d");
    ASSERT_TRUE(a.port) << said_;
    a.poll();
    EXPECT_EQ(a.count(Kind::down), 0u);
    unlink(path.c_str());
    EXPECT_TRUE(a.next(Kind::down));
    EXPECT_NE(std::string(a.port->problem()).find("d has been removed"), std::string::npos) << a.port->problem();
}

// Groups

class VerbsGroups : public VerbsPair {
  protected:
    void SetUp() override {
        VerbsPair::SetUp();
        two_ports();
    }
    PortMembership::MembershipState settle(Listener& side, PortMembership* member) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(200);
        while (member->state() == PortMembership::MembershipState::joining && std::chrono::steady_clock::now() < end)
            side.poll();
        return member->state();
    }
    static WorkStatus cast(PortMembership* member, const std::string& text) {
        const iovec part = {const_cast<char*>(text.data()), text.size()};
        return member->send(&part, 1);
    }
    const uint8_t group[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3};
};

TEST_F(VerbsGroups, AMulticastDatagramReachesAllOtherMembers) {
    PortMembership* one = a.port->join(group);
    ASSERT_TRUE(one);
    EXPECT_EQ(cast(one, "early"), WorkStatus::busy);
    PortMembership* other = b.port->join(group);
    ASSERT_EQ(settle(a, one), PortMembership::MembershipState::ready);
    ASSERT_EQ(settle(b, other), PortMembership::MembershipState::ready);
    EXPECT_EQ(cast(one, "all"), WorkStatus::done);
    EXPECT_EQ(b.next_text(Kind::datagram), "all");
    other->leave();
    EXPECT_EQ(cast(one, "nobody"), WorkStatus::done);
    EXPECT_EQ(b.count(Kind::datagram), 0u);
    // TearDown() closes the port of `one` while it is still a member of the group.
}

TEST_F(VerbsGroups, AReplacedDatagramQueueStaysAMember) {
    PortMembership* one = a.port->join(group);
    PortMembership* other = b.port->join(group);
    ASSERT_EQ(settle(a, one), PortMembership::MembershipState::ready);
    ASSERT_EQ(settle(b, other), PortMembership::MembershipState::ready);
    fake::break_queue(b.port->address().queue, IBV_WC_GENERAL_ERR);
    ASSERT_TRUE(b.next(Kind::up));
    ASSERT_EQ(settle(b, other), PortMembership::MembershipState::ready);
    EXPECT_EQ(cast(one, "still"), WorkStatus::done);
    EXPECT_EQ(b.next_text(Kind::datagram), "still");
}

TEST_F(VerbsGroups, ARefusedJoinReportsTheReason) {
    fake::fail_always("rdma_join_multicast's answer", EACCES);
    PortMembership* one = a.port->join(group);
    ASSERT_EQ(settle(a, one), PortMembership::MembershipState::failed);
    EXPECT_NE(std::string(a.port->problem()).find("can't join the group ::ffff:239.1.2.3: Permission denied"),
              std::string::npos)
        << a.port->problem();
    EXPECT_EQ(cast(one, "x"), WorkStatus::broken);
    one->leave();
}

}  // namespace
}  // namespace starling::verbs
