// Endpoints on real sockets: two processes on the loopback device, strangers, and the creation of sessions.
#include "transport/network/datagram/endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "mpi.h"
#include "network_endpoint_process.h"
#include "transport/network/datagram/rails.h"
#include "transport/network/datagram/udp.h"
#include "transport/network/wire/datagram.h"

namespace starling::network {
namespace {

/// Returns whether a socket receives datagrams at this address.
bool is_heard_at(const char* address, uint16_t port) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = inet_addr(address);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    EXPECT_EQ(send(fd, "x", 1, 0), 1);
    // The second send fails if the kernel has learned that nothing receives the first.
    const bool heard = send(fd, "x", 1, 0) == 1;
    close(fd);
    return heard;
}

TEST(Endpoint, ListensOnlyOnChosenInterfaces) {
    Process a(0);
    EXPECT_TRUE(is_heard_at("127.0.0.1", a.endpoint->port()));
    EXPECT_FALSE(is_heard_at("127.0.0.2", a.endpoint->port()));
}

// A datagram with three packets, and others after it: packets without memory to deliver them are delivered in order at a later poll.
TEST(Endpoint, PacketsThatFailForLackOfMemoryAreDeliveredAgain) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    int tries = 0;
    size_t refused_at = SIZE_MAX;
    b.on_packet = [&] {
        if (b.got.size() % 5 != 3 || b.got.size() == refused_at) return;
        refused_at = b.got.size();
        b.got.pop_back();
        throw std::bad_alloc();
    };
    constexpr size_t kPackets = 300;
    for (uint64_t i = 0; i < kPackets;) {
        a.endpoint->begin_batch();
        for (int k = 0; k < 3 && i < kPackets; ++k) ASSERT_TRUE(a.send(to_b, i++, "packet"));
        a.endpoint->end_batch();
    }
    const auto poll_b = [&] {
        try {
            b.poll();
        } catch (const std::bad_alloc&) { ++tries; }
        return b.got.size() == kPackets && a.endpoint->idle(to_b);
    };
    ASSERT_TRUE(poll_until({&a}, poll_b));
    for (uint64_t i = 0; i < kPackets; ++i) ASSERT_EQ(b.got[i].first, i);
    EXPECT_EQ(tries, static_cast<int>(kPackets / 5));
    // No datagram was lost. But if this process loses its core for long, it receives acknowledgements late and retransmits.
    if (a.endpoint->counters().timeouts == 0) { EXPECT_EQ(a.endpoint->counters().repeated, 0u); }
}

TEST(Endpoint, FirstPacketNeedsNoPreparationOnTheOtherSide) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    ASSERT_TRUE(a.send(to_b, 1, "hello"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 1 && a.endpoint->idle(to_b); }));
    EXPECT_EQ(b.got[0].second, "hello");
    // The datagram contained the address and key of a, so b can reply.
    Session* const to_a = b.endpoint->find(kJob, 0);
    ASSERT_TRUE(to_a);
    EXPECT_TRUE(b.endpoint->reachable(*to_a));
    ASSERT_TRUE(b.send(*to_a, 2, "back"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.got.size() == 1; }));
    EXPECT_EQ(a.got[0].second, "back");
}

TEST(Endpoint, PacketsWaitForAnAddress) {
    Process a(0), b(1);
    Session* const session = a.endpoint->add(kJob, 1, 0, {&a, nullptr}, &a);
    ASSERT_TRUE(a.send(*session, 1, "early"));
    EXPECT_FALSE(a.endpoint->reachable(*session));
    a.poll();
    EXPECT_EQ(a.endpoint->counters().datagrams_sent, 0u);
    a.endpoint->set_key(*session, key_of(1));
    const uint32_t address = htonl(INADDR_LOOPBACK);
    a.endpoint->set_addresses(*session, &address, 1, b.endpoint->port());
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 1; }));
    EXPECT_GT(a.endpoint->counters().datagrams_sent, 0u);
}

TEST(Endpoint, PingPongIsOneDatagramEachWay) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    Session& to_a = b.meet(0, a.endpoint->port());
    uint64_t rounds = 0;
    b.on_packet = [&] { b.send(to_a, rounds, "12345678"); };
    a.on_packet = [&] {
        if (++rounds < 1000) a.send(to_b, rounds, "12345678");
    };
    a.send(to_b, 0, "12345678");
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return rounds == 1000; }));
    // A pause of this process may cost a separate acknowledgement, or a retransmission.
    EXPECT_LT(a.endpoint->counters().datagrams_sent, 1100u);
    EXPECT_LT(b.endpoint->counters().datagrams_sent, 1100u);
    EXPECT_GT(a.endpoint->round_trip(to_b), 0u);
}

size_t open_descriptors() {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

// More peers are busy than there are lanes (sockets connected to one peer). Lanes move between peers while replies are in transit, also
// with long packets and many at a time.
TEST(Endpoint, TheBusiestPeersHaveLanesAndNoPacketIsLostWhenLanesMove) {
    constexpr uint32_t kPeers = 7;
    Process hub(0);
    std::vector<std::unique_ptr<Process>> peers;
    std::vector<Session*> sessions;
    for (uint32_t i = 0; i < kPeers; ++i) {
        peers.push_back(std::make_unique<Process>(i + 1));
        sessions.push_back(&hub.meet(i + 1, peers[i]->endpoint->port()));
        Session& back = peers[i]->meet(0, hub.endpoint->port());
        peers[i]->on_packet = [&back, me = peers[i].get()] { me->send(back, me->got.back().first, me->got.back().second); };
    }
    const size_t before = open_descriptors();
    uint64_t expected = 0;
    const auto exchange_with = [&](uint64_t whom, size_t bytes) {
        const std::string text(bytes, static_cast<char>('a' + whom));
        return hub.send(*sessions[whom], expected++, text) &&
               poll_until({&hub, peers[whom].get()}, [&] { return hub.got.size() == expected; }) &&
               hub.got.back() == std::make_pair(expected - 1, text);
    };
    // Each peer in turn becomes the busiest. The others send now and then, so that no lane is idle.
    for (uint64_t chosen = 0; chosen < kPeers; ++chosen) {
        const uint64_t end = now_ns() + 10 * kSecond;
        for (uint64_t round = 0; hub.endpoint->counters().lanes <= chosen; ++round) {
            ASSERT_LT(now_ns(), end) << chosen;
            ASSERT_TRUE(exchange_with(round % 50 == 0 ? round / 50 % kPeers : chosen, round % 100 == 1 ? 5000 : 8)) << chosen;
        }
    }
    // The hub's four sockets and one of each peer.
    EXPECT_EQ(open_descriptors(), before + 4 + kPeers);
}

TEST(Endpoint, ManyAndLongPacketsArriveInOrder) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    constexpr uint64_t kCount = 3000;
    uint64_t sent = 0;
    const auto text = [](uint64_t n) { return std::string(n % 50 == 0 ? 60'000 : n % 1500, static_cast<char>('a' + n % 26)); };
    ASSERT_TRUE(poll_until({&a, &b}, [&] {
        while (sent < kCount && a.send(to_b, sent, text(sent))) ++sent;
        return b.got.size() == kCount;
    }));
    for (uint64_t i = 0; i < kCount; ++i) {
        ASSERT_EQ(b.got[i].first, i);
        ASSERT_EQ(b.got[i].second, text(i)) << i;
    }
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->idle(to_b); }));
}

TEST(Endpoint, BatchesShareDatagrams) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    a.endpoint->begin_batch();
    for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(a.send(to_b, i, "small"));
    EXPECT_EQ(a.endpoint->counters().datagrams_sent, 0u);
    a.endpoint->end_batch();
    EXPECT_EQ(a.endpoint->counters().datagrams_sent, 1u);
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 20; }));
}

TEST(Endpoint, StrangersAndGarbageAreDroppedAndCounted) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    ASSERT_TRUE(a.send(to_b, 1, "first"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 1; }));

    // Process c sends to b with a wrong key, then as if b were rank 3. Then b gets random bytes.
    Process c(2);
    Session* const wrong_key = c.endpoint->add(kJob, 1, 4711, {&c, nullptr}, &c);
    Session* const wrong_rank = c.endpoint->add(kJob, 3, key_of(1), {&c, nullptr}, &c);
    const uint32_t address = htonl(INADDR_LOOPBACK);
    c.endpoint->set_addresses(*wrong_key, &address, 1, b.endpoint->port());
    c.endpoint->set_addresses(*wrong_rank, &address, 1, b.endpoint->port());
    c.send(*wrong_key, 1, "stranger");
    c.send(*wrong_rank, 1, "stranger");
    const int noise = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = address;
    to.sin_port = htons(b.endpoint->port());
    for (size_t bytes : {0, 1, 7, 79, 80, 81, 1400, 9100, 30000}) {
        const std::string text(bytes, 'S');
        ASSERT_EQ(sendto(noise, text.data(), bytes, 0, reinterpret_cast<sockaddr*>(&to), sizeof to),
                  static_cast<ssize_t>(bytes));
    }
    close(noise);
    EXPECT_TRUE(poll_until({&a, &b}, [&] { return b.endpoint->counters().rejected >= 11; }));
    ASSERT_TRUE(a.send(to_b, 2, "second"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 2; }));
    EXPECT_EQ(b.got[1].second, "second");
}

TEST(Endpoint, ARefusedSenderRetransmitsUntilItIsAccepted) {
    Process a(0), b(1);
    b.hospitable = false;
    Session& to_b = a.meet(1, b.endpoint->port());
    ASSERT_TRUE(a.send(to_b, 1, "please"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.endpoint->counters().unknown > 0; }));
    EXPECT_TRUE(b.got.empty());
    b.hospitable = true;
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 1; }));
}

TEST(Endpoint, SilenceEndsInATimeout) {
    set_variable("STARLING_IP_TIMEOUT", "1");
    Process a(0), b(1);
    set_variable("STARLING_IP_TIMEOUT", "30");
    Session& to_b = a.meet(1, b.endpoint->port());
    ASSERT_TRUE(a.send(to_b, 1, "into the void"));
    EXPECT_GT(a.endpoint->stalled_since(to_b), 0u);
    ASSERT_TRUE(poll_until({&a}, [&] { return a.given_up > 0; }));
    EXPECT_EQ(a.given_up, 1);
    EXPECT_EQ(a.endpoint->find(kJob, 1), nullptr);
    EXPECT_FALSE(a.send(to_b, 2, "too late"));
}

// Stopped by a signal or a debugger, or in a paused virtual machine: the time in which this process did not poll is not its peer's silence.
// The remaining timeout has its usual length.
TEST(Endpoint, TimeInWhichThisProcessWasStoppedDoesNotCountForTheTimeout) {
    set_variable("STARLING_IP_TIMEOUT", "1");
    Process a(0), b(1);
    set_variable("STARLING_IP_TIMEOUT", "30");
    Session& there = a.meet(1, b.endpoint->port());
    ASSERT_TRUE(a.send(there, 1, "hello"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return b.got.size() == 1 && a.endpoint->idle(there); }));
    ASSERT_TRUE(a.send(there, 2, "are you there?"));
    a.poll();
    usleep(1'500'000);
    a.poll();
    EXPECT_EQ(a.given_up, 0);
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.endpoint->idle(there); }));
    EXPECT_EQ(b.got.size(), 2u);
    EXPECT_EQ(a.given_up, 0);

    ASSERT_TRUE(a.send(there, 3, "and now?"));
    a.poll();
    usleep(1'500'000);
    EXPECT_TRUE(poll_until({&a}, [&] { return a.given_up == 1; })) << "the peer's silence still ends in a timeout";
}

TEST(Endpoint, ACloseWithinADeliveryEndsDelivery) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    b.on_packet = [&] { b.endpoint->close(*b.endpoint->find(kJob, 0)); };
    a.endpoint->begin_batch();
    for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(a.send(to_b, i, "x"));
    a.endpoint->end_batch();
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return !b.got.empty(); }));
    for (int i = 0; i < 100; ++i) b.poll();
    EXPECT_EQ(b.got.size(), 1u);
}

/// The descriptor becomes readable when poll() would find something, and the deadline announces when it would find more.
TEST(Endpoint, SleepersAreWoken) {
    Process a(0), b(1);
    Session& to_b = a.meet(1, b.endpoint->port());
    pollfd wait{b.endpoint->wait_fd(), POLLIN, 0};
    EXPECT_EQ(::poll(&wait, 1, 0), 0);
    ASSERT_TRUE(a.send(to_b, 1, "wake up"));
    EXPECT_EQ(::poll(&wait, 1, 10'000), 1);
    b.poll();
    EXPECT_EQ(b.got.size(), 1u);
    EXPECT_EQ(::poll(&wait, 1, 0), 0);
    EXPECT_LT(b.endpoint->next_deadline(), now_ns() + kSecond) << "the acknowledgement is owed";
    EXPECT_LT(a.endpoint->next_deadline(), now_ns() + kSecond) << "the retransmission timer runs";
}

// One poll must receive everything, because an event that it leaves would wake the sleeping process again at once. Three peers have lanes,
// one has none.
TEST(Endpoint, OnePollAfterAWakeReceivesAllDatagrams) {
    constexpr size_t kPeers = 4, kWithLanes = 3;
    Process hub(0);
    std::vector<std::unique_ptr<Process>> peers;
    std::vector<Session*> to_peer, to_hub;
    for (uint32_t i = 0; i < kPeers; ++i) {
        Process& peer = *peers.emplace_back(std::make_unique<Process>(i + 1));
        to_peer.push_back(&hub.meet(i + 1, peer.endpoint->port()));
        to_hub.push_back(&peer.meet(0, hub.endpoint->port()));
    }
    for (uint64_t i = 0; i < 200; ++i)
        for (size_t peer = 0; peer < kPeers; ++peer) {
            if (peer >= kWithLanes && i > 10) continue;
            ASSERT_TRUE(hub.send(*to_peer[peer], i, "busy"));
            const size_t before = peers[peer]->got.size();
            ASSERT_TRUE(poll_until({&hub, peers[peer].get()}, [&] { return peers[peer]->got.size() > before; }));
        }
    ASSERT_EQ(hub.endpoint->counters().lanes, kWithLanes);
    const auto came = [&] { return hub.endpoint->ready_sockets() & ((1u << Udp::kSockets) - 1); };
    for (uint64_t round = 0; round < 10; ++round) {
        while (came() != 0) hub.poll();  // receive all acknowledgements of earlier datagrams
        hub.got.clear();
        for (size_t i = 0; i < kPeers; ++i) ASSERT_TRUE(peers[i]->send(*to_hub[i], round, "wake up"));
        for (const uint64_t end = now_ns() + 10 * kSecond; std::popcount(came()) != static_cast<int>(kPeers);)
            ASSERT_LT(now_ns(), end);
        hub.poll();
        EXPECT_EQ(hub.got.size(), kPeers);
        EXPECT_EQ(came(), 0u);
    }
}

/// The child echoes; both sides sleep while they wait, as processes do.
void echo_until_killed(Process& process, int port_out) {
    const uint16_t port = process.endpoint->port();
    if (write(port_out, &port, sizeof port) != sizeof port) _exit(1);
    size_t echoed = 0;
    for (;;) {
        process.poll();
        for (; echoed < process.got.size(); ++echoed)
            if (!process.send(*process.endpoint->find(kJob, 0), process.got[echoed].first, process.got[echoed].second)) break;
        const uint64_t now = now_ns(), deadline = process.endpoint->next_deadline();
        pollfd wait{process.endpoint->wait_fd(), POLLIN, 0};
        if (echoed == process.got.size())
            ::poll(&wait, 1,
                   deadline <= now ? 0 : static_cast<int>(std::min<uint64_t>((deadline - now) / kMillisecond + 1, 1000)));
    }
}

TEST(Endpoint, TwoProcessesExchange) {
    int port_pipe[2];
    ASSERT_EQ(pipe(port_pipe), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        alarm(250);
        Process b(1);
        echo_until_killed(b, port_pipe[1]);
    }
    uint16_t port = 0;
    ASSERT_EQ(read(port_pipe[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    Process a(0);
    Session& to_b = a.meet(1, port);
    constexpr uint64_t kCount = 5000;
    uint64_t sent = 0;
    const auto text = [](uint64_t n) { return std::string(n % 97 == 0 ? 20'000 : n % 700, static_cast<char>('a' + n % 26)); };
    EXPECT_TRUE(poll_until({&a}, [&] {
        while (sent < kCount && sent < a.got.size() + 100 && a.send(to_b, sent, text(sent))) ++sent;
        return a.got.size() == kCount;
    })) << a.got.size();
    for (uint64_t i = 0; i < a.got.size(); ++i) {
        ASSERT_EQ(a.got[i].first, i);
        ASSERT_EQ(a.got[i].second, text(i)) << i;
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    close(port_pipe[0]);
    close(port_pipe[1]);
}

TEST(Endpoint, ASuccessorIsDistinguishedFromItsPredecessor) {
    Process a(0);
    auto b = std::make_unique<Process>(1);
    Session& to_b = a.meet(1, b->endpoint->port());
    ASSERT_TRUE(a.send(to_b, 1, "to the first"));
    ASSERT_TRUE(poll_until({&a, b.get()}, [&] { return b->got.size() == 1 && a.endpoint->idle(to_b); }));
    // The first process ends. Another with its name starts and sends something.
    Process second(1);
    Session& to_a = second.meet(0, a.endpoint->port());
    ASSERT_TRUE(second.send(to_a, 9, "from the second"));
    ASSERT_TRUE(poll_until({&a, &second}, [&] { return a.given_up == 1; }));
    // The upcall for an unknown sender has created a session with the second process.
    ASSERT_TRUE(poll_until({&a, &second}, [&] { return a.got.size() == 1; }));
    EXPECT_EQ(a.got[0].second, "from the second");
    Session* const again = a.endpoint->find(kJob, 1);
    ASSERT_TRUE(again);
    ASSERT_TRUE(a.send(*again, 3, "to the second"));
    ASSERT_TRUE(poll_until({&a, &second}, [&] { return second.got.size() == 1; }));
    EXPECT_EQ(second.got[0].second, "to the second");
}

TEST(Rails, TheInterfaceFilterIsCheckedAndFollowed) {
    InterfaceFilter choice;
    EXPECT_EQ(InterfaceFilter::parse("10.1.0.0/33", choice), MPI_ERR_ARG);
    EXPECT_EQ(InterfaceFilter::parse("eth0,,eth1", choice), MPI_ERR_ARG);
    EXPECT_EQ(InterfaceFilter::parse("an-interface-with-a-long-name", choice), MPI_ERR_ARG);
    const uint32_t address = inet_addr("10.1.2.3");
    ASSERT_EQ(InterfaceFilter::parse("eth0,10.1.0.0/16", choice), MPI_SUCCESS);
    EXPECT_TRUE(choice.takes("eth0", inet_addr("192.168.1.1"), false));
    EXPECT_TRUE(choice.takes("ib0", address, false));
    EXPECT_FALSE(choice.takes("eth1", inet_addr("10.2.2.3"), false));
    ASSERT_EQ(InterfaceFilter::parse("^eth0,10.1.0.0/16", choice), MPI_SUCCESS);
    EXPECT_FALSE(choice.takes("eth0", inet_addr("192.168.1.1"), false));
    EXPECT_TRUE(choice.takes("eth1", inet_addr("10.2.2.3"), false));
    EXPECT_FALSE(choice.takes("lo", inet_addr("127.0.0.1"), true));
    ASSERT_EQ(InterfaceFilter::parse(nullptr, choice), MPI_SUCCESS);
    EXPECT_TRUE(choice.takes("eth0", address, false));
    EXPECT_FALSE(choice.takes("lo", inet_addr("127.0.0.1"), true));
}

}  // namespace
}  // namespace starling::network
