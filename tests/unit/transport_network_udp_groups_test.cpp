// Multicast groups with InfiniBand or RoCE ports besides the sockets: which of them carries datagrams, and the failover when ports lose
// datagrams, go down, appear, refuse or are closed. The sockets are on the loopback device, where every socket receives each datagram.
#include "transport/network/multicast/udp_groups.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "mpi.h"
#include "verbs_fabric.h"

namespace starling::network {
namespace {

using verbs::Fabric;
using verbs::Passage;

const transport::GroupName kName{0x1234, 0xabcdef0123456789}, kSamePlace{0x1234, 0x1111111111111111};

struct Heard final : transport::DatagramHandler {
    void datagram(const std::byte* data, uint32_t bytes) override {
        texts.emplace_back(reinterpret_cast<const char*>(data), bytes);
    }
    std::vector<std::string> texts;
};

/// A process on a separate host: the fabric's ports of that host, and sockets.
class Host {
  public:
    Host(Fabric& fabric, int which) {
        EXPECT_EQ(verbs::Ports::open(fabric.host(which), ports), MPI_SUCCESS);
        groups = std::make_unique<GroupSockets>(epoll, 1, ports.get());
        EXPECT_EQ(groups->open(), MPI_SUCCESS) << failure_text();
    }
    ~Host() {
        member.reset();
        groups.reset();
        ports.reset();
        close(epoll);
    }
    void join(const transport::GroupName& name = kName) {
        ASSERT_EQ(groups->join(name, heard, member), MPI_SUCCESS) << failure_text();
        poll();
    }
    bool say(std::string_view text) {
        const iovec part{const_cast<char*>(text.data()), text.size()};
        const bool taken = member->send(&part, 1);
        member->flush();
        return taken;
    }
    void poll() {
        const int count = ports->poll();
        for (int i = 0; i < count; ++i) {
            const verbs::Came& one = ports->datagram(i);
            others += !groups->handle_from_port(one.event.data, one.event.bytes);
            ports->return_buffer(one);
        }
        groups->poll(now_ns());
    }

    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    std::unique_ptr<verbs::Ports> ports;
    std::unique_ptr<GroupSockets> groups;
    Heard heard;
    std::unique_ptr<transport::MulticastMembership> member;
    int others = 0;
};

class Groups : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_EQ(set_variable("STARLING_IP_INTERFACES", "lo"), MPI_SUCCESS);
        for (int i = 0; i < 2; ++i) fabric.add_device(i, "p" + std::to_string(i), 1, 2048);
    }
    void open() {
        for (int i = 0; i < 2; ++i) hosts[i] = std::make_unique<Host>(fabric, i);
    }
    void join() {
        open();
        for (auto& host : hosts) host->join();
    }
    /// Expects a datagram of each host to reach the other: by verbs if `by_port`, otherwise by the sockets.
    void expect_heard(const std::string& text, bool by_port) {
        const uint64_t before = counters.datagrams_group_verbs;
        ASSERT_TRUE(hosts[0]->say(text));
        const auto& texts = hosts[1]->heard.texts;
        for (int i = 0; i < 100'000 && (texts.empty() || texts.back() != text); ++i) hosts[1]->poll();
        ASSERT_FALSE(texts.empty());
        EXPECT_EQ(texts.back(), text);
        EXPECT_EQ(counters.datagrams_group_verbs - before, by_port ? 1u : 0u);
    }

    Fabric fabric;
    std::unique_ptr<Host> hosts[2];
};

TEST_F(Groups, DatagramsUsePortsIfAllMembersHaveThem) {
    join();
    expect_heard("one", true);
    expect_heard(std::string(GroupSockets::kPayload, 'x'), true);
    EXPECT_EQ(hosts[1]->others, 0);
    EXPECT_EQ(fabric.port(0).sent, 2u);
}

/// An outsider: any user of a host can listen to the group and send to it.
class Stranger {
  public:
    Stranger() {
        const int one = 1;
        setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        sockaddr_in any{};
        any.sin_family = AF_INET;
        any.sin_port = htons(static_cast<uint16_t>(config().multicast_port));
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        GroupRange range;
        EXPECT_EQ(GroupRange::parse("239.192.0.0/14", range), MPI_SUCCESS);
        to_ = any;
        to_.sin_addr.s_addr = range.address(kName.place);
        const ip_mreqn group{{to_.sin_addr.s_addr}, {htonl(INADDR_LOOPBACK)}, 0};
        EXPECT_EQ(setsockopt(fd_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof group), 0);
        EXPECT_EQ(setsockopt(fd_, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof group), 0);
    }
    ~Stranger() { close(fd_); }
    std::string hear() {
        char buffer[2000];
        const ssize_t got = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
        return {buffer, got > 0 ? static_cast<size_t>(got) : 0};
    }
    void say(const std::string& bytes) {
        EXPECT_EQ(sendto(fd_, bytes.data(), bytes.size(), 0, reinterpret_cast<sockaddr*>(&to_), sizeof to_),
                  static_cast<ssize_t>(bytes.size()));
    }

  private:
    const int fd_ = socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in to_{};
};

TEST_F(Groups, StrangersCannotReadForgeOrReplayDatagrams) {
    open();
    for (int i = 0; i < 2; ++i) fabric.port(i).refuses_groups = true;
    for (auto& host : hosts) host->join();
    Stranger stranger;
    expect_heard("the password", false);
    std::string heard;
    while (heard.empty()) heard = stranger.hear();
    EXPECT_EQ(heard.size(), sizeof kName.key + 12 + kSealBytes);
    EXPECT_EQ(heard.find("password"), std::string::npos);
    const uint64_t before = counters.strangers_group;
    std::string changed = heard, made(heard.substr(0, sizeof kName.key) + "the password"), cut = heard.substr(0, 20);
    changed[10] = static_cast<char>(changed[10] ^ 1);
    std::string renumbered = heard;
    renumbered[renumbered.size() - kSealTag - 8] = 77;
    for (const std::string& one : {heard, changed, made, cut, renumbered, made + std::string(kSealBytes, 'x')})
        stranger.say(one);
    // Both hosts receive all six datagrams of the stranger.
    for (int i = 0; i < 1'000'000 && counters.strangers_group < before + 12; ++i)
        for (auto& host : hosts) host->poll();
    EXPECT_EQ(counters.strangers_group, before + 12);
    expect_heard("the next", false);
    EXPECT_EQ(hosts[1]->heard.texts.size(), 2u);
}

TEST_F(Groups, AMemberThatLeftReceivesNothing) {
    join();
    expect_heard("one", true);
    hosts[1]->member.reset();
    EXPECT_TRUE(fabric.port(1).groups.empty());
    ASSERT_TRUE(hosts[0]->say("two"));
    hosts[1]->poll();
    EXPECT_EQ(hosts[1]->heard.texts.size(), 1u);
}

TEST_F(Groups, GroupsOfOneAddressShareItsMembership) {
    join();
    std::unique_ptr<transport::MulticastMembership> another;
    Heard heard;
    ASSERT_EQ(hosts[1]->groups->join(kSamePlace, heard, another), MPI_SUCCESS);
    EXPECT_EQ(fabric.port(1).groups.size(), 1u);
    another.reset();
    expect_heard("still", true);
    // Datagrams of another group at the same network address are dropped.
    hosts[0]->member.reset();
    hosts[0]->join(kSamePlace);
    ASSERT_TRUE(hosts[0]->say("strange"));
    hosts[1]->poll();
    EXPECT_EQ(hosts[1]->heard.texts.size(), 1u);
    EXPECT_EQ(hosts[1]->others, 1);
}

TEST_F(Groups, FailoverFromAPortToSocketsAndBack) {
    join();
    expect_heard("one", true);
    fabric.set_link(fabric.port(0), false);
    hosts[0]->poll();
    expect_heard("two", false);
    fabric.set_link(fabric.port(0), true);
    hosts[0]->poll();
    expect_heard("three", true);
}

TEST_F(Groups, LossesAndBusyPortsAreLeftToTheCallersRetransmission) {
    join();
    fabric.passage = [] { return Passage::lost; };
    ASSERT_TRUE(hosts[0]->say("lost"));
    fabric.passage = nullptr;
    fabric.port(0).room = 0;
    EXPECT_FALSE(hosts[0]->say("busy"));
    fabric.port(0).room = SIZE_MAX;
    expect_heard("again", true);
    EXPECT_EQ(hosts[1]->heard.texts.size(), 1u);
}

TEST_F(Groups, FailoverToTheNextRailIfAMemberReceivesNothing) {
    fabric.devices.pop_back();
    join();
    ASSERT_TRUE(hosts[0]->say("by the port, which the other has not"));
    hosts[1]->poll();
    EXPECT_TRUE(hosts[1]->heard.texts.empty());
    hosts[0]->member->report_unreachable();
    expect_heard("by the socket", false);
    hosts[0]->member->report_unreachable();
    EXPECT_TRUE(hosts[0]->say("by the port again"));
    EXPECT_EQ(fabric.port(0).sent, 2u);
}

TEST_F(Groups, APortWhoseJoinIsRefusedIsNotUsedUntilItChanges) {
    open();
    fabric.port(0).refuses_groups = true;
    for (auto& host : hosts) host->join();
    expect_heard("one", false);
    fabric.port(0).refuses_groups = false;
    fabric.set_link(fabric.port(0), false);
    fabric.set_link(fabric.port(0), true);
    for (int i = 0; i < 2; ++i) hosts[0]->poll();
    expect_heard("two", true);
}

TEST_F(Groups, APortThatIsClosedIsForgotten) {
    join();
    hosts[0]->groups->closing(0);
    EXPECT_TRUE(fabric.port(0).groups.empty());
    expect_heard("one", false);
}

TEST_F(Groups, DatagramsTooLongForAPortUseSockets) {
    for (auto& device : fabric.devices) device.facts.mtu = 1024;
    join();
    EXPECT_TRUE(fabric.port(0).groups.empty());
    expect_heard("one", false);
}

}  // namespace
}  // namespace starling::network
