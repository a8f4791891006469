// Failover between rails on a real kernel: two processes in separate network namespaces, joined by two cables, one of which is pulled while
// messages flow. The test needs the right to create namespaces, and is skipped with a message otherwise.
#include "transport/network/datagram/rails.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/config.h"
#include "mpi.h"
#include "transport/network/datagram/endpoint.h"

namespace starling::network {
namespace {

bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

bool enter_namespaces() {
    const uid_t uid = getuid();
    const gid_t gid = getgid();
    if (unshare(CLONE_NEWNET) == 0) return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    const auto map = [](const char* file, const std::string& text) {
        const int fd = open(file, O_WRONLY);
        const bool done = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
        if (fd >= 0) close(fd);
        return done;
    };
    map("/proc/self/setgroups", "deny");
    return map("/proc/self/uid_map", "0 " + std::to_string(uid) + " 1") &&
           map("/proc/self/gid_map", "0 " + std::to_string(gid) + " 1");
}

constexpr uint64_t kJob = 5;
constexpr uint64_t kPackets = 20'000;

/// Observations of one of the two processes.
struct Seen final : transport::PacketReceiver {
    void deliver(void*, const transport::Packet& packet) override { out_of_turn += packet.header.message.context != got++; }
    Endpoint* endpoint = nullptr;
    uint64_t got = 0;
    uint64_t out_of_turn = 0;
    uint64_t given_up = 0;
};
Seen seen;

/// Waits until the kernel has noticed that a cable has two ends.
void await_rails() {
    for (const uint64_t end = now_ns() + 200 * kSecond; now_ns() < end; usleep(10'000)) {
        Rails rails;
        if (rails.open({}) == MPI_SUCCESS && rails.usable() == 2) return;
    }
    _exit(8);
}

/// Opens the endpoint of `rank` and a session with the other process. The two processes exchange their ports over the descriptors.
Session& open_endpoint(uint32_t rank, int to_other, int from_other) {
    const EndpointUpcalls upcalls{
        [](void*, job::JobId job, uint32_t peer, uint64_t key) {
            return seen.endpoint->add(job, peer, key, {&seen, nullptr}, nullptr);
        },
        [](void*) { ++seen.given_up; },
    };
    await_rails();
    if (Endpoint::open({kJob, rank, 100 + rank}, upcalls, seen.endpoint) != MPI_SUCCESS) _exit(3);
    const uint16_t mine = seen.endpoint->port();
    uint16_t theirs = 0;
    if (write(to_other, &mine, sizeof mine) != sizeof mine || read(from_other, &theirs, sizeof theirs) != sizeof theirs)
        _exit(4);
    Session* const session = seen.endpoint->add(kJob, 1 - rank, 101 - rank, {&seen, nullptr}, nullptr);
    const char* const hosts[2][2] = {{"10.91.1.1", "10.91.2.1"}, {"10.91.1.2", "10.91.2.2"}};
    const uint32_t addresses[2] = {inet_addr(hosts[1 - rank][0]), inet_addr(hosts[1 - rank][1])};
    seen.endpoint->set_addresses(*session, addresses, 2, theirs);
    return *session;
}

void set_up_host(int host) {
    const std::string number = std::to_string(host + 1);
    for (const std::string& rail : {std::string("1"), std::string("2")})
        if (!run("ip addr add 10.91." + rail + "." + number + "/24 dev rail" + rail) || !run("ip link set rail" + rail + " up"))
            _exit(5);
}

/// Sends all packets, calling `event(n)` before packet n, then waits until they are acknowledged.
template <class Event>
void send_all(Session& session, Event event) {
    for (uint64_t n = 0; n < kPackets && seen.given_up == 0; ++n) {
        event(n);
        std::byte* payload;
        packet::Header* header;
        while (!seen.endpoint->reserve(session, 900, payload, header) && seen.given_up == 0) seen.endpoint->poll(now_ns());
        if (seen.given_up) break;
        header->kind = packet::PacketKind::eager;
        header->operation = 0;
        header->message.context = n;
        std::memset(payload, static_cast<int>(n), 900);
        seen.endpoint->commit(session, 900);
        if (n % 16 == 0) seen.endpoint->poll(now_ns());
    }
    while (!seen.endpoint->idle(session) && seen.given_up == 0) seen.endpoint->poll(now_ns());
}

void receive_until_killed(int to_other, int from_other) {
    alarm(280);
    char go;
    if (unshare(CLONE_NEWNET) != 0 || write(to_other, "n", 1) != 1 || read(from_other, &go, 1) != 1) _exit(2);
    set_up_host(1);
    if (write(to_other, "u", 1) != 1) _exit(2);
    open_endpoint(1, to_other, from_other);
    uint64_t told = 0;
    for (;;) {
        seen.endpoint->poll(now_ns());
        if (seen.got == kPackets && told == 0) {
            told = 1;
            if (write(to_other, &seen.out_of_turn, sizeof seen.out_of_turn) != sizeof seen.out_of_turn) _exit(6);
        }
    }
}

/// Runs the sender in this process and the receiver in a child, each in its own network namespace. Returns 0 on success.
int with_another_host(const std::function<void(const std::string& there, uint64_t n)>& event, uint64_t least_of_a_rail) {
    if (!enter_namespaces()) return 77;
    int there[2], back[2];
    if (pipe(there) != 0 || pipe(back) != 0) return 1;
    const pid_t child = fork();
    close(child == 0 ? there[1] : there[0]);
    close(child == 0 ? back[0] : back[1]);
    if (child == 0) receive_until_killed(back[1], there[0]);
    char ready;
    if (read(back[0], &ready, 1) != 1) return 77;
    const std::string other = std::to_string(child);
    int result = 77;
    if (run("ip link add rail1 type veth peer name rail1 netns " + other) &&
        run("ip link add rail2 type veth peer name rail2 netns " + other)) {
        set_up_host(0);
        if (write(there[1], "g", 1) != 1 || read(back[0], &ready, 1) != 1) _exit(7);
        Session& session = open_endpoint(0, there[1], back[0]);
        send_all(session, [&](uint64_t n) { event("nsenter -t " + other + " -n ", n); });
        uint64_t out_of_turn = 1;
        result = seen.given_up != 0                                                      ? 10
                 : read(back[0], &out_of_turn, sizeof out_of_turn) != sizeof out_of_turn ? 11
                 : out_of_turn != 0                                                      ? 12
                                                                                         : 0;
        RailCounters rails[4];
        const size_t count = seen.endpoint->rail_counters(rails, 4);
        for (size_t i = 0; i < count; ++i)
            if (rails[i].bytes_sent < least_of_a_rail) result = 13;
        if (count != 2) result = 14;
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    return result;
}

int pull_cables(bool by_our_side) {
    const auto pull = [by_our_side](const std::string& there, uint64_t n) {
        const std::string side = by_our_side ? "" : there;
        if (n == kPackets / 4) run(side + "ip link set rail1 down");
        // Rail 1 comes up with its address again, and later rail 2 fails.
        if (n == kPackets / 2) run(side + "ip link set rail1 up");
        if (n == kPackets * 3 / 4) run(side + "ip link set rail2 down");
    };
    return with_another_host(pull, kPackets * 900 / 10);
}

// Changes the peer's addresses more often than an address list has entries.
int change_addresses(bool) {
    const auto change = [](const std::string& there, uint64_t n) {
        constexpr uint64_t kEvery = kPackets / 10;
        if (n % kEvery != 0 || n == 0) return;
        const uint64_t before = n / kEvery + 1, now = before + 1;
        for (const std::string net : {"10.91.1.", "10.91.2."}) {
            const std::string rail = net == "10.91.1." ? "/24 dev rail1" : "/24 dev rail2";
            run(there + "ip addr add " + net + std::to_string(now) + rail);
            run(there + "ip addr del " + net + std::to_string(before) + rail);
            // Add the new address again: the kernel removes it together with the network's first address.
            run(there + "ip addr add " + net + std::to_string(now) + rail);
        }
    };
    return with_another_host(change, 0);
}

// More messages than one refresh() reads. Returns 0 if it leaves the rest to later calls, which read all.
int leave_a_rest(bool) {
    InterfaceFilter choice;
    if (!enter_namespaces() || !run("ip link set lo up")) return 77;
    Rails rails;
    if (InterfaceFilter::parse("lo", choice) != MPI_SUCCESS || rails.open(choice) != MPI_SUCCESS) return 20;
    if (!run("for i in $(seq 100); do ip addr add 127.1.0.$i/32 dev lo || exit 1; done")) return 77;
    const auto is_readable = [&rails] {
        pollfd socket{rails.fd(), POLLIN, 0};
        return poll(&socket, 1, 0) == 1;
    };
    if (!rails.refresh()) return 21;
    if (!is_readable()) return 22;
    for (int i = 0; i < 100 && is_readable(); ++i) rails.refresh();
    return is_readable() ? 23 : 0;
}

/// Fails the test unless the session survives `trouble`. `chosen` is the value of STARLING_IP_INTERFACES; empty: all interfaces are used.
void expect_survival(int (*trouble)(bool), bool by_our_side, const char* chosen = "") {
    fflush(nullptr);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) _exit(set_variable("STARLING_IP_INTERFACES", chosen) == MPI_SUCCESS ? trouble(by_our_side) : 1);
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no right to make network namespaces here";
    EXPECT_EQ(WEXITSTATUS(status), 0) << "see with_another_host()";
}

TEST(Rails, FailoverWhenOurRailsGoDownInTurn) { expect_survival(pull_cables, true); }
TEST(Rails, FailoverWhenThePeersRailsGoDownInTurn) { expect_survival(pull_cables, false); }
TEST(Rails, FailoverWhenThePeersAddressesChange) { expect_survival(change_addresses, false); }
// With chosen interfaces, each address has a separate socket.
TEST(Rails, FailoverBetweenChosenRailsWhenOursGoDown) { expect_survival(pull_cables, true, "rail1,rail2"); }
TEST(Rails, FailoverBetweenChosenRailsWhenThePeersAddressesChange) { expect_survival(change_addresses, false, "10.91.0.0/16"); }

TEST(Rails, AFloodOfChangesIsReadInParts) { expect_survival(leave_a_rest, false); }

TEST(Rails, TheRailsOfThisHostAreFound) {
    set_variable("STARLING_IP_INTERFACES", "lo");
    InterfaceFilter choice;
    ASSERT_EQ(InterfaceFilter::parse("lo", choice), MPI_SUCCESS);
    Rails rails;
    ASSERT_EQ(rails.open(choice), MPI_SUCCESS);
    ASSERT_EQ(rails.count(), 1);
    EXPECT_EQ(rails[0].address, htonl(INADDR_LOOPBACK));
    EXPECT_TRUE(rails.is_own(htonl(INADDR_LOOPBACK)));
    EXPECT_EQ(rails.towards(inet_addr("127.9.9.9"), 0), 0);
    EXPECT_EQ(rails.towards(inet_addr("10.1.2.3"), 0), Rails::kRouted);
    Rails none;
    ASSERT_EQ(InterfaceFilter::parse("nowhere0", choice), MPI_SUCCESS);
    EXPECT_EQ(none.open(choice), MPI_ERR_OTHER);
}

}  // namespace
}  // namespace starling::network
