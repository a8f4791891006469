// RC connections (transport/network/rdma/rc_connection.h) between two processes within one, over an in-memory fabric.
#include "transport/network/rdma/rc_connection.h"

#include "rc_sides.h"

namespace starling::network {
namespace {

TEST_F(RcTest, OneExchangeOpensIt) {
    open();
    EXPECT_EQ(a.opened, 1);
    EXPECT_EQ(b.opened, 1);
    EXPECT_EQ(fabric.frames, 2u);  // one hello in each direction
    EXPECT_EQ(a.send("one"), SendResult::done);
    EXPECT_EQ(b.send("two"), SendResult::done);
    run();
    EXPECT_EQ(b.frames, std::vector<std::string>{"one"});
    EXPECT_EQ(a.frames, std::vector<std::string>{"two"});
}

TEST_F(RcTest, NothingIsSentToAQueueThatIsNotConnected) {
    const std::string open_a = a.describe(packet::PacketKind::open);
    ASSERT_EQ(b.use(packet::PacketKind::open, open_a), MPI_SUCCESS);
    run();
    EXPECT_EQ(fabric.frames, 0u);
    EXPECT_EQ(b.send("early"), SendResult::closed);
    ASSERT_EQ(a.use(packet::PacketKind::accept, b.describe(packet::PacketKind::accept)), MPI_SUCCESS);
    run();
    EXPECT_TRUE(a.is_open() && b.is_open());
}

TEST_F(RcTest, OffersOfRcAndTcpAreDistinguished) {
    const std::string offer = a.describe(packet::PacketKind::open);
    EXPECT_TRUE(Rc::is_offer(reinterpret_cast<const std::byte*>(offer.data())));
    for (const uint8_t version : {1, 2, 3}) {
        std::byte tcp[32] = {};
        tcp[10] = static_cast<std::byte>(version);
        EXPECT_FALSE(Rc::is_offer(tcp));
    }
}

TEST_F(RcTest, BothAskAtOnce) {
    const std::string open_a = a.describe(packet::PacketKind::open), open_b = b.describe(packet::PacketKind::open);
    ASSERT_EQ(a.use(packet::PacketKind::open, open_b), MPI_SUCCESS);
    a.port.run();
    EXPECT_EQ(fabric.frames, 0u);  // a sends nothing until b has connected, because b may compute for long before that
    EXPECT_EQ(a.broken + a.failed, 0);
    ASSERT_EQ(b.use(packet::PacketKind::open, open_a), MPI_SUCCESS);
    run();
    EXPECT_TRUE(a.is_open() && b.is_open());
    EXPECT_EQ(a.opened, 1);
    EXPECT_EQ(b.opened, 1);
    EXPECT_EQ(a.queues() + b.queues(), 2u);
}

TEST_F(RcTest, AnAcceptOfAnEarlierOfferIsIgnored) {
    ASSERT_EQ(b.use(packet::PacketKind::open, a.describe(packet::PacketKind::open)), MPI_SUCCESS);
    const std::string late = b.describe(packet::PacketKind::accept);
    a.rc->drop(*a.connection);  // as if a had timed out and notified b
    b.rc->drop(*b.connection);
    a.connect();
    b.connect();
    const std::string again = a.describe(packet::PacketKind::open);
    EXPECT_EQ(a.use(packet::PacketKind::accept, late), MPI_SUCCESS);
    EXPECT_EQ(a.connection->state(), Connection::CarrierState::waiting);
    ASSERT_EQ(b.use(packet::PacketKind::open, again), MPI_SUCCESS);
    ASSERT_EQ(a.use(packet::PacketKind::accept, b.describe(packet::PacketKind::accept)), MPI_SUCCESS);
    run();
    EXPECT_TRUE(a.is_open() && b.is_open());
}

TEST_F(RcTest, RefusalsAreReportedAtOnce) {
    a.port.refuse_queues = true;
    EXPECT_EQ(a.describe(packet::PacketKind::open), "");
    EXPECT_NE(std::string(failure_text()).find("fabric1"), std::string::npos) << failure_text();
    a.port.refuse_queues = false;
    const std::string offer = a.describe(packet::PacketKind::open);
    b.port.refuse_connects = true;
    EXPECT_EQ(b.use(packet::PacketKind::open, offer), MPI_ERR_OTHER);
    b.rc->drop(*b.connection);
    EXPECT_EQ(b.queues(), 0u);
    std::string other = offer;
    other[10] = static_cast<char>(kRcVersion + 1);
    b.connect();
    EXPECT_EQ(b.use(packet::PacketKind::open, other), MPI_ERR_OTHER);
    EXPECT_NE(std::string(failure_text()).find(std::string("version ") + std::to_string((kRcVersion + 1) & 0x7f)),
              std::string::npos)
        << failure_text();
}

TEST_F(RcTest, AConnectionThatCarriesNothingFailsToOpen) {
    ASSERT_EQ(b.use(packet::PacketKind::open, a.describe(packet::PacketKind::open)), MPI_SUCCESS);
    const std::string accept = b.describe(packet::PacketKind::accept);
    fabric.ports.erase(2);  // frames to b are lost
    ASSERT_EQ(a.use(packet::PacketKind::accept, accept), MPI_SUCCESS);
    run();
    EXPECT_EQ(a.failed, 1);
    EXPECT_EQ(b.failed, 1);  // a's report has reached b
    EXPECT_EQ(a.opened + b.opened + a.broken + b.broken, 0);
    fabric.ports[2] = &b.port;
}

TEST_F(RcTest, AFullQueueReportsRoomLater) {
    open();
    int sent = 0;
    while (a.send("frame " + std::to_string(sent)) == SendResult::done) ++sent;
    EXPECT_EQ(static_cast<size_t>(sent), fabric.depth);
    EXPECT_EQ(a.room, 0);
    run();
    EXPECT_EQ(a.room, 1);
    EXPECT_EQ(a.send("another"), SendResult::done);
    run();
    ASSERT_EQ(b.frames.size(), static_cast<size_t>(sent) + 1);
    for (int i = 0; i < sent; ++i) EXPECT_EQ(b.frames[static_cast<size_t>(i)], "frame " + std::to_string(i));
}

TEST_F(RcTest, TheClosingFrameArrivesLast) {
    open();
    for (size_t i = 0; i < fabric.depth; ++i) ASSERT_EQ(a.send(std::to_string(i)), SendResult::done);
    a.rc->finish(*a.connection);  // the queue has no room for the closing frame
    EXPECT_EQ(a.send("late"), SendResult::closed);
    int before_end = -1;
    b.on_frame = [&](Connection&) { before_end = b.ended; };
    run();
    EXPECT_EQ(b.frames.size(), fabric.depth);
    EXPECT_EQ(before_end, 0);
    EXPECT_EQ(b.ended, 1);
    // b answers the closing frame and drops the connection at once, as link does.
    b.rc->finish(*b.connection);
    b.rc->drop(*b.connection);
    run();
    EXPECT_EQ(a.ended, 1);
    EXPECT_EQ(a.broken + b.broken, 0);
    a.rc->drop(*a.connection);
    run();
    EXPECT_EQ(a.port.queues.size() + b.port.queues.size(), 0u);
}

TEST_F(RcTest, DroppedWhileItsClosingFrameWaits) {
    open();
    for (size_t i = 0; i < fabric.depth; ++i) ASSERT_EQ(b.send(std::to_string(i)), SendResult::done);
    a.rc->finish(*a.connection);
    a.port.run();
    b.poll();
    ASSERT_EQ(b.ended, 1);
    b.rc->finish(*b.connection);
    b.rc->drop(*b.connection);
    run();
    EXPECT_EQ(a.frames.size(), fabric.depth);
    EXPECT_EQ(a.ended, 1);
    a.rc->drop(*a.connection);
    run();
    EXPECT_EQ(a.port.queues.size() + b.port.queues.size(), 0u);
}

TEST_F(RcTest, ABreakAtOneEndBreaksTheOther) {
    open();
    a.port.queues[0]->break_now();
    run();
    EXPECT_EQ(a.broken, 1);
    EXPECT_EQ(b.broken, 1);
    EXPECT_EQ(a.send("late"), SendResult::closed);
    EXPECT_TRUE(b.connection->stalls(0));
    EXPECT_EQ(a.queues() + b.queues(), 0u);
}

TEST_F(RcTest, QueuesBreakInEveryState) {
    enum class At { waiting, dialling, open, finished, left };
    for (const At at : {At::waiting, At::dialling, At::open, At::finished, At::left}) {
        SCOPED_TRACE(static_cast<int>(at));
        a.rc->drop(*a.connection), b.rc->drop(*b.connection);
        a.connect(), b.connect();
        run();
        a.failed = b.failed = a.broken = b.broken = 0;
        const std::string offer = a.describe(packet::PacketKind::open);
        if (at >= At::dialling) {
            ASSERT_EQ(b.use(packet::PacketKind::open, offer), MPI_SUCCESS);
            ASSERT_EQ(a.use(packet::PacketKind::accept, b.describe(packet::PacketKind::accept)), MPI_SUCCESS);
        }
        if (at >= At::open) run();
        for (size_t i = 0; at >= At::finished && i < fabric.depth; ++i) ASSERT_EQ(a.send("x"), SendResult::done);
        if (at >= At::finished) a.rc->finish(*a.connection);
        if (at == At::left) a.rc->drop(*a.connection);
        a.rc->lose_port(a.port, false);
        run();
        EXPECT_EQ(a.queues(), 0u);
        EXPECT_EQ(a.failed, at == At::waiting || at == At::dialling);
        EXPECT_EQ(a.broken, at == At::open || at == At::finished);
        EXPECT_EQ(b.failed, at == At::dialling);
        EXPECT_EQ(b.broken, at >= At::open);  // b is notified, even without a closing frame
        if (at == At::left) a.connect();
    }
}

TEST_F(RcTest, AReportAboutAnotherQueueBreaksNothing) {
    open();
    const uint32_t mine = a.port.queues[0]->number, theirs = b.port.queues[0]->number;
    for (const QueuePair pair : {QueuePair{theirs + 1, mine}, QueuePair{theirs, mine + 1}})
        a.rc->lose_remote_queue(*a.connection, pair);
    EXPECT_EQ(a.broken, 0);
    a.rc->lose_remote_queue(*a.connection, {theirs, mine});
    EXPECT_EQ(a.broken, 1);
    run();
    EXPECT_EQ(b.broken, 0);  // b sent the report, so it is not notified
}

TEST_F(RcTest, MalformedFramesBreakTheConnection) {
    for (const std::string& frame : {std::string("xx"), std::string("xxxxxxxxxxxx"), std::string(40, '\0')}) {
        open();
        a.frames.clear();
        const iovec part{const_cast<char*>(frame.data()), frame.size()};
        ASSERT_EQ(static_cast<RcConnection*>(b.connection)->queue()->send(&part, 1), verbs::WorkStatus::done);
        const int before = a.broken;
        run();
        EXPECT_EQ(a.broken, before + 1);
        EXPECT_EQ(a.frames.size(), 0u);
        a.rc->drop(*a.connection), b.rc->drop(*b.connection);
        a.connect(), b.connect();
        run();
    }
    open();
    ASSERT_EQ(b.send("garbage"), SendResult::done);
    run();
    EXPECT_TRUE(!a.is_open() && !b.is_open());
}

TEST_F(RcTest, AStreamIsSentInFragments) {
    open();
    OutStream stream(source(a, 1'000'003));
    b.memory.resize(stream.source().bytes);
    for (const bool in_place : {true, false}) {
        b.in_place = in_place;
        b.coverage.clear();
        std::fill(b.memory.begin(), b.memory.end(), std::byte{});
        OutStream one(source(a, 1'000'003));
        a.rc->add_stream(*a.connection, one);
        run();
        EXPECT_EQ(b.coverage.bytes(), one.source().bytes);
        EXPECT_EQ(b.memory, data);
        EXPECT_FALSE(one.has_work());
        a.rc->remove_stream(one, true);
    }
    EXPECT_EQ(a.rc->fragments_sent().bytes, 2 * 1'000'003u);
}

TEST_F(RcTest, AStreamOfNoncontiguousData) {
    open();
    OutStream::StreamSource scattered = source(a, 300'000);
    scattered.memory = nullptr;
    static const std::byte* from;
    from = data.data();
    scattered.pack = [](void*, uint64_t offset, std::byte* to, uint64_t bytes) { std::memcpy(to, from + offset, bytes); };
    OutStream stream(scattered);
    b.memory.resize(scattered.bytes);
    a.rc->add_stream(*a.connection, stream);
    run();
    EXPECT_EQ(b.memory, data);
}

TEST_F(RcTest, SessionFramesOvertakeStreamFragments) {
    open();
    OutStream stream(source(a, 200'000));
    b.memory.resize(stream.source().bytes);
    a.rc->add_stream(*a.connection, stream);
    ASSERT_EQ(a.send("urgent"), SendResult::busy);
    a.on_room = [&](Connection&) {
        a.on_room = nullptr;
        EXPECT_EQ(a.send("urgent"), SendResult::done);
        EXPECT_TRUE(stream.has_work());
    };
    uint64_t pieces = 0;
    b.on_frame = [&](Connection&) { pieces = b.coverage.bytes(); };
    run();
    EXPECT_EQ(b.frames, std::vector<std::string>{"urgent"});
    EXPECT_LT(pieces, 2 * fabric.depth * fabric.frame);
    EXPECT_EQ(b.memory, data);
}

TEST_F(RcTest, AStreamSurvivesItsConnection) {
    open();
    OutStream stream(source(a, 500'000));
    b.memory.resize(stream.source().bytes);
    a.rc->add_stream(*a.connection, stream);
    a.port.run();
    b.poll();
    const_cast<OutStream::StreamSource&>(stream.source()).stranded = [](OutStream&) {};
    a.port.queues[0]->break_now();
    run();
    EXPECT_EQ(a.stranded, 1);
    EXPECT_TRUE(stream.has_work());
    EXPECT_EQ(stream.waiting_bytes(), stream.source().bytes);  // all bytes, because the frames in the queue may be lost
    EXPECT_EQ(stream.connection, nullptr);
    a.rc->drop(*a.connection), b.rc->drop(*b.connection);
    a.connect(), b.connect();
    open();
    a.rc->add_stream(*a.connection, stream);
    run();
    EXPECT_EQ(b.memory, data);
    EXPECT_EQ(b.coverage.bytes(), stream.source().bytes);
}

TEST_F(RcTest, ClosedDuringAStream) {
    open();
    OutStream stream(source(a, 500'000));
    b.memory.resize(stream.source().bytes);
    a.rc->add_stream(*a.connection, stream);
    a.rc->finish(*a.connection);
    EXPECT_EQ(a.stranded, 1);
    const uint64_t left = stream.waiting_bytes();
    EXPECT_LT(left, stream.source().bytes);  // a part was sent before the closing frame
    run();
    EXPECT_EQ(b.ended, 1);
    EXPECT_EQ(b.coverage.bytes(), stream.source().bytes - left);
    a.rc->remove_stream(stream);
    a.rc->drop(*a.connection);
}

class RcMemoryTest : public RcTest {
  protected:
    void SetUp() override { open(); }
    RcConnection& from_a() { return *static_cast<RcConnection*>(a.connection); }
    RegisteredMemory* register_memory(void* memory, uint64_t bytes) {
        return b.rc->memory_of(b.port.id, b.port).register_memory(memory, bytes, true, region);
    }
    transport::RemoteKey region;
    transport::Completion done;
};

TEST_F(RcMemoryTest, RdmaReadsAndWritesOfAllLengths) {
    // Lengths of streams that are sent inline, through a slot, from the caller's memory, and in several parts.
    for (const uint64_t bytes :
         {uint64_t{1}, uint64_t{64}, uint64_t{65}, uint64_t{4096}, uint64_t{4097}, uint64_t{9'000'001}}) {
        SCOPED_TRACE(bytes);
        std::vector<char> theirs(bytes + 16, 'x'), mine(bytes);
        for (uint64_t i = 0; i < bytes; ++i) mine[i] = static_cast<char>(i * 31 + i / 251);
        RegisteredMemory* const loan = register_memory(theirs.data(), theirs.size());
        ASSERT_NE(loan, nullptr);
        ASSERT_EQ(a.rc->write(from_a(), region, 8, mine.data(), bytes, done), MPI_SUCCESS) << failure_text();
        EXPECT_FALSE(done.done);
        run();
        ASSERT_TRUE(done.done);
        EXPECT_EQ(done.error, MPI_SUCCESS);
        for (uint64_t i = 0; i < 8; ++i) EXPECT_TRUE(theirs[i] == 'x' && theirs[8 + bytes + i] == 'x');
        std::vector<char> back(bytes);
        ASSERT_EQ(a.rc->read(from_a(), region, 8, back.data(), bytes, done), MPI_SUCCESS) << failure_text();
        run();
        ASSERT_TRUE(done.done);
        EXPECT_EQ(back, mine);
        RcPort::deregister(*loan, false);
    }
}

TEST_F(RcMemoryTest, ManyConcurrentTransfersAllComplete) {
    std::vector<uint64_t> theirs(100), mine(100);
    RegisteredMemory* const loan = register_memory(theirs.data(), 800);
    std::vector<transport::Completion> all(100);
    for (uint64_t i = 0; i < 100; ++i) {
        theirs[i] = i * i;
        ASSERT_EQ(a.rc->read(from_a(), region, 8 * i, &mine[i], 8, all[i]), MPI_SUCCESS) << failure_text();
    }
    run();
    for (const transport::Completion& one : all) EXPECT_TRUE(one.done && one.error == MPI_SUCCESS);
    EXPECT_EQ(mine, theirs);
    RcPort::deregister(*loan, false);
}

TEST_F(RcMemoryTest, TransfersOfABrokenConnectionFail) {
    std::vector<char> theirs(1 << 20), mine(1 << 20);
    RegisteredMemory* const loan = register_memory(theirs.data(), theirs.size());
    int told = 0;
    static int* count;
    count = &told;
    transport::Completion all[3];
    for (transport::Completion& one : all) {
        one.then = [](transport::Completion&) { ++*count; };
        ASSERT_EQ(a.rc->read(from_a(), region, 0, mine.data(), mine.size(), one), MPI_SUCCESS);
    }
    a.port.queues[0]->break_now();
    run();
    EXPECT_EQ(told, 3);
    for (const transport::Completion& one : all) EXPECT_TRUE(one.done && one.error == MPI_ERR_OTHER);
    EXPECT_EQ(a.rc->read(from_a(), region, 0, mine.data(), 1, done), MPI_ERR_OTHER);
    RcPort::deregister(*loan, false);
}

TEST_F(RcMemoryTest, DeregisteredMemoryIsNotAccessed) {
    std::vector<char> theirs(1 << 20), mine(1 << 20, 'm');
    RegisteredMemory* const loan =
        b.rc->memory_of(b.port.id, b.port).register_memory(theirs.data(), theirs.size(), false, region);
    ASSERT_EQ(a.rc->read(from_a(), region, 0, mine.data(), mine.size(), done), MPI_SUCCESS);
    RcPort::deregister(*loan, true);
    run();
    EXPECT_EQ(done.error, MPI_ERR_OTHER);
    EXPECT_EQ(mine[0], 'm');
    EXPECT_EQ(a.broken, 1);
}

TEST_F(RcMemoryTest, TheClosingFrameWaitsForReads) {
    std::vector<char> theirs(20 << 20, 't'), mine(20 << 20);
    RegisteredMemory* const loan = register_memory(theirs.data(), theirs.size());
    ASSERT_EQ(a.rc->read(from_a(), region, 0, mine.data(), mine.size(), done), MPI_SUCCESS);
    // b closes the connection. a's link answers and drops the connection at once, while a's read is in progress.
    b.rc->finish(*b.connection);
    b.port.run();
    a.poll();
    ASSERT_EQ(a.ended, 1);
    a.rc->finish(*a.connection);
    a.rc->drop(*a.connection);
    EXPECT_EQ(b.ended, 0);
    run();
    EXPECT_TRUE(done.done && done.error == MPI_SUCCESS);
    EXPECT_EQ(mine, theirs);
    EXPECT_EQ(b.ended, 1);
    RcPort::deregister(*loan, false);
}

TEST_F(RcMemoryTest, AnRkeyOfAnotherPortIsRefused) {
    char memory[64];
    RcPort other(9, b.port);
    RegisteredMemory* const loan = other.register_memory(memory, sizeof memory, true, region);
    EXPECT_FALSE(from_a().reaches(region));
    EXPECT_EQ(a.rc->read(from_a(), region, 0, memory, 1, done), MPI_ERR_OTHER);
    RcPort::deregister(*loan, false);
}

TEST_F(RcMemoryTest, AClosedPortDeregistersItsMemory) {
    std::vector<char> theirs(1 << 20), mine(1 << 20);
    RegisteredMemory* const loan = register_memory(theirs.data(), theirs.size());
    ASSERT_EQ(a.rc->read(from_a(), region, 0, mine.data(), mine.size(), done), MPI_SUCCESS);
    b.rc->lose_port(b.port, true);
    EXPECT_EQ(b.port.registered, 0u);
    a.rc->lose_port(a.port, true);
    EXPECT_EQ(a.port.registered, 0u);
    EXPECT_EQ(a.describe(packet::PacketKind::open), "");  // nothing is requested from a closed port
    run();
    EXPECT_EQ(done.error, MPI_ERR_OTHER);
    RcPort::deregister(*loan, false);
}

}  // namespace
}  // namespace starling::network
