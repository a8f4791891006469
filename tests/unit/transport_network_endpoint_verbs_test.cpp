// Endpoints with InfiniBand ports besides their sockets: when they use the ports, and failover when ports lose or reorder datagrams, are
// cut off, go down or appear.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>

#include <memory>
#include <new>
#include <random>
#include <string>

#include "network_endpoint_process.h"
#include "transport/network/datagram/endpoint.h"
#include "transport/network/datagram/gid_pairs.h"
#include "verbs_fabric.h"

namespace starling::network {
namespace {

using verbs::Fabric;
using verbs::FabricPort;
using verbs::Passage;

/// Two processes on separate hosts; each opens the fabric's devices of its host.
class EndpointVerbs : public testing::Test {
  protected:
    void open(Process& process, int host) {
        std::unique_ptr<verbs::Ports> ports;
        ASSERT_EQ(verbs::Ports::open(fabric.host(host), ports), MPI_SUCCESS);
        process.endpoint->adopt(std::move(ports));
    }
    void open_both() {
        open(a, 0);
        open(b, 1);
        to_b = &a.meet(1, b.endpoint->port());
    }
    /// Exchanges messages until both send by verbs.
    bool meet_by_verbs() {
        if (!a.send(*to_b, expected_b++, "hello")) return false;
        return poll_until({&a, &b}, [&] { return by_verbs(); });
    }
    bool by_verbs() {
        const Session* const to_a = b.endpoint->find(kJob, 0);
        return to_a && a.endpoint->verbs_place(*to_b) >= 0 && b.endpoint->verbs_place(*to_a) >= 0;
    }
    uint64_t udp_datagrams() const { return a.endpoint->counters().datagrams_sent + b.endpoint->counters().datagrams_sent; }

    static std::string text_of(uint64_t number) {
        const uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;
        return std::string(mixed >> 60 == 0 ? mixed >> 8 & 0xffff : mixed >> 8 & 0x7ff, static_cast<char>('a' + number % 26));
    }
    /// Sends `count` more messages to b while polling; calls `between` in each round.
    bool send_on(
        uint64_t count, const std::function<void()>& between = [] {}) {
        const uint64_t end = expected_b + count;
        const bool came = poll_until({&a, &b}, [&] {
            between();
            while (expected_b < end && a.send(*to_b, expected_b, text_of(expected_b))) ++expected_b;
            return b.got.size() == end && a.endpoint->idle(*to_b);
        });
        return came && expected_b == end;
    }
    void check_all() {
        for (uint64_t i = 1; i < b.got.size(); ++i) {
            ASSERT_EQ(b.got[i].first, i);
            ASSERT_EQ(b.got[i].second, text_of(i)) << i;
        }
        for (const FabricPort* const port : fabric.ports) EXPECT_EQ(port->lent, 0);
    }

    Fabric fabric;
    Process a{0}, b{1};
    Session* to_b = nullptr;
    uint64_t expected_b = 0;
};

TEST_F(EndpointVerbs, PeersExchangeTheirPortsAndUseThem) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->idle(*to_b) && b.endpoint->idle(*b.endpoint->find(kJob, 0)); }));
    const uint64_t before = udp_datagrams();
    ASSERT_TRUE(send_on(500));
    check_all();
    EXPECT_EQ(udp_datagrams(), before);
    EXPECT_GT(fabric.port(0).sent, 100u);
    EXPECT_GT(fabric.port(1).sent, 0u);
}

TEST_F(EndpointVerbs, AnswersOfOneRoundNeedOneDatagramEachWay) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    Session& to_a = *b.endpoint->find(kJob, 0);
    uint64_t rounds = 0;
    b.on_packet = [&] { b.send(to_a, rounds, "12345678"); };
    a.on_packet = [&] {
        if (++rounds < 1000) a.send(*to_b, rounds, "12345678");
    };
    const uint64_t before = fabric.port(0).sent + fabric.port(1).sent;
    a.send(*to_b, 0, "12345678");
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return rounds == 1000; }));
    // A pause of this process may cost a separate acknowledgement, or a retransmission.
    EXPECT_LT(fabric.port(0).sent + fabric.port(1).sent - before, 2200u);
}

TEST_F(EndpointVerbs, UdpIsUsedIfOneSideHasNoPorts) {
    fabric.add_device(0, "a0");
    open(a, 0);
    to_b = &a.meet(1, b.endpoint->port());
    // b's datagram names b's ports. a remembers them, because ports of a may appear later.
    expected_b = 1;
    ASSERT_TRUE(a.send(*to_b, 0, "first"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 1; }));
    EXPECT_EQ(a.endpoint->counters().datagrams_sent - a.endpoint->counters().repeated, 1u);
    ASSERT_TRUE(send_on(300));
    check_all();
    EXPECT_EQ(a.endpoint->verbs_place(*to_b), -1);
    EXPECT_EQ(fabric.port(0).sent, 0u);
}

TEST_F(EndpointVerbs, SocketsArePolledSeldomWhilePortsReceiveEverything) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    ASSERT_TRUE(send_on(10));
    // A time long after the last arrival by a socket.
    const uint64_t then = now_ns() + kSecond;
    a.poll(then);
    b.poll(then);
    ASSERT_TRUE(a.send(*to_b, expected_b, text_of(expected_b)));
    b.poll(then);
    ASSERT_EQ(b.got.size(), expected_b + 1);
    Process c{2};
    Session& from_c = c.meet(1, b.endpoint->port());
    c.send(from_c, 0, "by a socket");
    for (uint64_t i = 1; i < 10; ++i) b.poll(then + i * kMicrosecond);
    EXPECT_EQ(b.got.size(), expected_b + 1);
    b.poll(then + 100 * kMicrosecond);
    EXPECT_EQ(b.got.size(), expected_b + 2);
    // After a datagram arrived by a socket, every poll includes the sockets.
    c.send(from_c, 0, "another");
    b.poll(then + 101 * kMicrosecond);
    EXPECT_EQ(b.got.size(), expected_b + 3);
    // After poll_udp_next() the next poll includes the sockets.
    a.send(*to_b, expected_b, text_of(expected_b));
    b.poll(then + 5 * kMillisecond);
    b.poll(then + 5 * kMillisecond + kMicrosecond);
    c.send(from_c, 0, "a third");
    b.endpoint->poll_udp_next();
    b.poll(then + 5 * kMillisecond + 2 * kMicrosecond);
    EXPECT_EQ(b.got.size(), expected_b + 5);
}

TEST_F(EndpointVerbs, LostAndReorderedDatagramsAreRetransmitted) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    std::mt19937_64 random(1);
    fabric.passage = [&] {
        const uint64_t dice = random() % 100;
        return dice < 5 ? Passage::lost : dice < 8 ? Passage::doubled : dice < 15 ? Passage::late : Passage::arrives;
    };
    ASSERT_TRUE(send_on(1500, [&] {
        if (random() % 8 == 0) fabric.let_go();
    }));
    check_all();
    EXPECT_GT(a.endpoint->counters().repeated, 0u);
    EXPECT_GT(fabric.port(0).sent, 500u);
}

TEST_F(EndpointVerbs, FailoverWhenAPortGoesDownAndBackWhenItReturns) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    for (const int which : {0, 1, 0}) {
        FabricPort& port = fabric.port(which);
        uint64_t turns = 0;
        ASSERT_TRUE(send_on(400, [&] {
            if (++turns == 5) fabric.set_link(port, false);
        })) << which;
        ASSERT_GE(turns, 5u);
        // All messages may have arrived before the port failed, but not the report of the failure.
        ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->verbs_place(*to_b) < 0; })) << which;
        const uint64_t by_verbs_before = fabric.port(0).sent;
        ASSERT_TRUE(send_on(100));
        EXPECT_EQ(fabric.port(0).sent, by_verbs_before) << "both ends know that the port failed";
        fabric.set_link(port, true);
        ASSERT_TRUE(poll_until({&a, &b}, [&] { return by_verbs(); })) << which;
        ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->idle(*to_b); }));
        const uint64_t by_udp_before = udp_datagrams();
        ASSERT_TRUE(send_on(100));
        EXPECT_EQ(udp_datagrams(), by_udp_before);
    }
    check_all();
    EXPECT_EQ(a.given_up + b.given_up, 0);
}

TEST_F(EndpointVerbs, FailoverFromASilentlyCutPortAndBack) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    ASSERT_TRUE(send_on(100));
    fabric.port(1).cut = true;
    ASSERT_TRUE(send_on(400));
    EXPECT_EQ(a.endpoint->verbs_place(*to_b), -1);
    ASSERT_TRUE(send_on(100));
    fabric.port(1).cut = false;
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->verbs_place(*to_b) >= 0; }));
    ASSERT_TRUE(send_on(100));
    check_all();
}

TEST_F(EndpointVerbs, PortsThatCanNotReachEachOtherAreNeverUsed) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    fabric.port(0).cut = true;
    ASSERT_TRUE(send_on(300));
    EXPECT_EQ(a.endpoint->verbs_place(*to_b), -1);
    // The port sends only probes, ever fewer of them; a path in use would send more.
    EXPECT_LT(fabric.port(0).sent, 20u);
}

TEST_F(EndpointVerbs, ABusyPortContinuesWhenThereIsRoom) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    FabricPort& port = fabric.port(0);
    int waits = 0;
    ASSERT_TRUE(send_on(300, [&] {
        if (port.room > 0 && port.room < 100) return;
        port.room = 3;
        if (++waits > 1) port.happen(verbs::VerbsEvent::VerbsEventKind::room);
    }));
    EXPECT_GT(waits, 10);
    port.room = SIZE_MAX;
    check_all();
}

TEST_F(EndpointVerbs, FailoverToAnotherPort) {
    for (const int host : {0, 1})
        for (const uint8_t subnet : {1, 2}) fabric.add_device(host, (host ? "b" : "a") + std::to_string(subnet), subnet);
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    ASSERT_TRUE(send_on(100));
    const int place = a.endpoint->verbs_place(*to_b);
    ASSERT_GE(place, 0);
    fabric.set_link(fabric.port(place), false);
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->verbs_place(*to_b) == 1 - place; }));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->idle(*to_b); }));
    const uint64_t before = udp_datagrams();
    ASSERT_TRUE(send_on(200));
    EXPECT_EQ(udp_datagrams(), before);
    check_all();
}

TEST_F(EndpointVerbs, PacketsThatFailForLackOfMemoryAreDeliveredAgain) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    int tries = 0;
    b.on_packet = [&] {
        if (++tries % 7 != 3) return;
        b.got.pop_back();
        throw std::bad_alloc();
    };
    for (const uint64_t end = expected_b + 100; expected_b < end; ++expected_b)
        ASSERT_TRUE(a.send(*to_b, expected_b, text_of(expected_b)));
    ASSERT_TRUE(poll_until({&a}, [&] {
        try {
            b.poll();
        } catch (const std::bad_alloc&) {}
        return b.got.size() == expected_b && a.endpoint->idle(*to_b);
    }));
    check_all();
    EXPECT_GT(tries, 110);
}

TEST_F(EndpointVerbs, FalsePortAddressesAreCountedAndHarmless) {
    fabric.add_device(0, "a0");
    open(a, 0);
    Session& to_a = b.meet(0, a.endpoint->port());
    const auto tell = [&](const std::string& lie) {
        std::byte* payload;
        packet::Header* header;
        ASSERT_TRUE(b.endpoint->reserve(to_a, static_cast<uint32_t>(lie.size()), payload, header));
        header->kind = packet::PacketKind::ports;
        header->operation = 0;
        header->access = {};
        std::memcpy(payload, lie.data(), lie.size());
        b.endpoint->commit(to_a, static_cast<uint32_t>(lie.size()));
    };
    for (const size_t bytes : {1, 31, 33, 160, 4000}) tell(std::string(bytes, 'x'));
    tell(std::string(32, '\0'));
    tell(std::string(32, '\xff'));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.endpoint->idle(to_a); }));
    EXPECT_EQ(a.endpoint->counters().rejected, 7u);
    // A port's address may be plausible although no peer has such a port: it is probed, but not used.
    verbs::VerbsAddress nobody;
    nobody.gid[15] = 9;
    nobody.queue = 77;
    nobody.mtu_log = 12;
    tell(std::string(reinterpret_cast<const char*>(&nobody), sizeof nobody));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return fabric.port(0).sent > 0; }));
    to_b = a.endpoint->find(kJob, 1);
    EXPECT_EQ(a.endpoint->verbs_place(*to_b), -1);
    ASSERT_TRUE(a.send(*to_b, 0, "by UDP"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.got.empty(); }));
    EXPECT_EQ(a.got.size(), 0u);
}

TEST_F(EndpointVerbs, ADatagramWithAnotherKeyIsAStranger) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    const uint64_t before = b.endpoint->counters().rejected;
    std::string noise(200, 'x');
    const iovec part{noise.data(), noise.size()};
    ASSERT_EQ(fabric.port(0).send(fabric.port(1).address(), &part, 1), verbs::WorkStatus::done);
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.endpoint->counters().rejected > before; }));
    ASSERT_TRUE(send_on(50));
    check_all();
}

TEST_F(EndpointVerbs, ASleeperOnTheDescriptorIsWoken) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->idle(*to_b); }));
    ASSERT_TRUE(b.endpoint->arm());
    pollfd waits{b.endpoint->wait_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&waits, 1, 0), 0);
    ASSERT_TRUE(a.send(*to_b, expected_b++, "wake"));
    EXPECT_EQ(poll(&waits, 1, 0), 1);
    EXPECT_TRUE(b.endpoint->ready_sockets() & Endpoint::kOwn);
    b.poll();
    EXPECT_EQ(b.got.back().second, "wake");
    ASSERT_TRUE(a.send(*to_b, expected_b++, "again"));
    EXPECT_FALSE(b.endpoint->arm());
}

TEST_F(EndpointVerbs, ASuccessorOfThePeerHasItsOwnPorts) {
    fabric.add_device(0, "a0");
    fabric.add_device(1, "b0");
    open_both();
    ASSERT_TRUE(meet_by_verbs());
    a.endpoint->close(*to_b);
    Process successor(1);
    open(successor, 1);
    to_b = &a.meet(1, successor.endpoint->port());
    EXPECT_EQ(a.endpoint->verbs_place(*to_b), -1);
    ASSERT_TRUE(a.send(*to_b, 0, "hello"));
    ASSERT_TRUE(
        poll_until({&a, &b, &successor}, [&] { return a.endpoint->verbs_place(*to_b) >= 0 && successor.got.size() == 1; }));
    EXPECT_EQ(successor.got[0].second, "hello");
}

}  // namespace
}  // namespace starling::network
