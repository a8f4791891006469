// Encrypted endpoints, with an attacker between them that reads, changes, replays and reflects their datagrams.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "network_endpoint_process.h"
#include "network_loopback.h"
#include "transport/network/crypto/sealed_datagram.h"

namespace starling::network {
namespace {

using Wire = std::vector<std::byte>;

/// The attacker between two processes: it has the port that the first believes to be the second's.
class Middle {
  public:
    explicit Middle(uint16_t to) : fd_(socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)), to_(loopback_port(to)) {
        sockaddr_in any = loopback_port(0);
        socklen_t length = sizeof any;
        EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&any), &length), 0);
        port_ = ntohs(any.sin_port);
    }
    ~Middle() { close(fd_); }
    uint16_t port() const { return port_; }
    /// Returns all datagrams that arrived since the last call.
    std::vector<Wire> take() {
        std::vector<Wire> all;
        for (Wire buffer(10000);;) {
            const ssize_t got = recv(fd_, buffer.data(), buffer.size(), 0);
            if (got < 0) return all;
            all.emplace_back(buffer.begin(), buffer.begin() + got);
        }
    }
    void pass(const Wire& wire) {
        EXPECT_EQ(sendto(fd_, wire.data(), wire.size(), 0, reinterpret_cast<const sockaddr*>(&to_), sizeof to_),
                  static_cast<ssize_t>(wire.size()));
    }

  private:
    int fd_;
    sockaddr_in to_;
    uint16_t port_ = 0;
};

bool contains(const Wire& wire, const std::string& text) {
    return std::string(reinterpret_cast<const char*>(wire.data()), wire.size()).find(text) != std::string::npos;
}

TEST(SealedEndpoint, PacketsAreReadableByTheSealedPeerOnly) {
    for (const bool sealed : {false, true}) {
        Process a(0, sealed), b(1, sealed);
        Middle middle(b.endpoint->port());
        Session& to_b = a.meet(1, middle.port());
        ASSERT_TRUE(a.send(to_b, 1, "a secret of sixty bytes, and so on"));
        std::vector<Wire> seen;
        ASSERT_TRUE(poll_until({&a}, [&] { return !(seen = middle.take()).empty(); }));
        EXPECT_EQ(contains(seen[0], "secret"), !sealed);
        middle.pass(seen[0]);
        ASSERT_TRUE(poll_until({&b}, [&] { return b.got.size() == 1; }));
        EXPECT_EQ(b.got[0].second, "a secret of sixty bytes, and so on");
    }
}

TEST(SealedEndpoint, PlainAndSealedEndpointsAreStrangers) {
    Process plain(0, false), sealed(1, true);
    ASSERT_TRUE(plain.send(plain.meet(1, sealed.endpoint->port()), 1, "plain"));
    ASSERT_TRUE(sealed.send(sealed.meet(0, plain.endpoint->port()), 1, "sealed"));
    EXPECT_TRUE(poll_until({&plain, &sealed}, [&] {
        return plain.endpoint->counters().rejected > 0 && sealed.endpoint->counters().rejected > 0;
    }));
    EXPECT_TRUE(plain.got.empty() && sealed.got.empty());
}

TEST(SealedEndpoint, AJobWithoutASecretIsRefused) {
    Process a(0, true);
    EXPECT_EQ(a.endpoint->add(kJob + 1, 0, 1, {&a, nullptr}, &a), nullptr);
}

// Each datagram is delivered with one byte changed, then unchanged, then twice more; also acknowledgements and those that report the
// sender's address.
TEST(SealedEndpoint, ChangedAndReplayedDatagramsAreRefused) {
    Process a(0, true), b(1, true);
    Middle middle(b.endpoint->port());
    Session& to_b = a.meet(1, middle.port());
    constexpr size_t kPackets = 40;
    uint64_t changed = 0, passed = 0;
    size_t at = 0;
    for (size_t i = 0; i < kPackets; ++i) {
        ASSERT_TRUE(a.send(to_b, i, "packet " + std::to_string(i)));
        ASSERT_TRUE(poll_until({&a, &b}, [&] {
            for (Wire& wire : middle.take()) {
                // Skip the replies of b: b sends them to the sender of the last valid datagram, which is the attacker.
                if (sender_of(wire.data()).rank != 0) continue;
                for (int n = 0; n < 20; ++n) {
                    Wire other = wire;
                    other[at++ % other.size()] ^= std::byte{0x40};
                    middle.pass(other);
                    ++changed;
                }
                for (int n = 0; n < 3; ++n) middle.pass(wire);
                ++passed;
            }
            return b.got.size() == i + 1;
        }));
    }
    for (size_t i = 0; i < kPackets; ++i) EXPECT_EQ(b.got[i].second, "packet " + std::to_string(i));
    const auto counters = [&] { return b.endpoint->counters(); };
    // If a change made the job's id unknown, the datagram counts as unknown, not as rejected, because the job may become known later.
    EXPECT_TRUE(
        poll_until({&b}, [&] { return counters().rejected + counters().unknown == changed && counters().stale == 2 * passed; }))
        << counters().rejected << " and " << counters().unknown << " of " << changed << ", " << counters().stale << " of "
        << 2 * passed;
    EXPECT_LT(counters().unknown, changed / 10);
    // If this process got no core for a while, a repeats a datagram, and b takes it for what it is.
    EXPECT_LE(b.endpoint->counters().duplicates, a.endpoint->counters().repeated);
}

// An attacker that relays a datagram does not become the address for replies once the peer's address is known.
TEST(SealedEndpoint, AReplayDoesNotRedirectASession) {
    Process a(0, true), b(1, true);
    Middle middle(b.endpoint->port());
    Session& to_b = a.meet(1, middle.port());
    Session& to_a = b.meet(0, a.endpoint->port());
    ASSERT_TRUE(b.send(to_a, 1, "hello"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.got.size() == 1; }));
    ASSERT_TRUE(a.send(to_b, 2, "by way of the middle"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] {
        for (const Wire& wire : middle.take()) middle.pass(wire);
        return b.got.size() == 1;
    }));
    ASSERT_TRUE(b.send(to_a, 3, "and back"));
    ASSERT_TRUE(poll_until({&a, &b}, [&] { return a.got.size() == 2; }))
        << "the reply must not go to the attacker, which forwards nothing";
}

// When this process meets a job again after it has forgotten it, the key is new, and earlier datagrams are refused.
TEST(SealedEndpoint, AJobMetAgainHasANewSealKey) {
    Process a(0, true), b(1, true);
    Middle middle(b.endpoint->port());
    std::vector<Wire> seen;
    for (int meeting = 0; meeting < 3; ++meeting) {
        Session& to_b = a.meet(1, middle.port());
        const size_t before = b.got.size();
        ASSERT_TRUE(a.send(to_b, 1, "the same each time"));
        ASSERT_TRUE(poll_until({&a, &b}, [&] {
            for (const Wire& wire : middle.take()) {
                if (sender_of(wire.data()).rank != 0) continue;
                middle.pass(wire);
                seen.push_back(wire);
            }
            return b.got.size() == before + 1;
        })) << meeting;
        a.endpoint->close(to_b);
        a.endpoint->forget(kJob);
    }
    std::set<uint64_t> salts;
    std::set<std::pair<uint64_t, uint64_t>> numbers;
    for (const Wire& wire : seen) {
        SealTrailer trailer;
        std::memcpy(&trailer, wire.data() + wire.size() - sizeof trailer, sizeof trailer);
        salts.insert(trailer.salt);
        EXPECT_TRUE(numbers.insert({trailer.salt, trailer.number}).second);
    }
    EXPECT_GE(salts.size(), 3u);
    const size_t got = b.got.size();
    for (const Wire& wire : seen) middle.pass(wire);
    ASSERT_TRUE(poll_until({&b}, [&] { return b.endpoint->counters().stale >= seen.size(); }));
    EXPECT_EQ(b.got.size(), got);
}

}  // namespace
}  // namespace starling::network
