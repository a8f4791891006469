// Encrypted TCP connections: records, greetings, and an attacker between the ends that changes, cuts, replays and swaps bytes.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "network_loopback.h"
#include "network_tcp_pair.h"
#include "transport/network/tcp/handshake.h"
#include "transport/network/tcp/records.h"

namespace starling::network {
namespace {

using Result = RecordOpener::RecordReadResult;
using Wire = std::vector<std::byte>;

const SealKey kKey{{4, 5, 6}}, kOtherKey{{4, 5, 7}};

/// Returns the cipher suites that this machine supports.
std::vector<Suite> suites() {
    return test_cipher()->has_aes ? std::vector{Suite::chacha, Suite::aes} : std::vector{Suite::chacha};
}
RecordSealer sealer_of(Suite suite) { return {*test_cipher(), test_cipher()->prepare(suite, kKey)}; }

Wire records_of(RecordSealer& sealer, const std::string& text) {
    Wire wire;
    const iovec part{const_cast<char*>(text.data()), text.size()};
    for (size_t done = 0; done < text.size();) {
        done += sealer.seal(&part, 1, done);
        const Bytes pending = sealer.pending();
        wire.insert(wire.end(), pending.begin(), pending.end());
        sealer.wrote(pending.size());
    }
    return wire;
}

/// Opens the records in `wire`, delivered in portions of this size, and returns their contents. `garbage` reports whether the opener
/// failed.
std::string open_all(Suite suite, const SealKey& key, const Wire& wire, size_t portion, bool& garbage) {
    RecordOpener opener(*test_cipher(), test_cipher()->prepare(suite, key));
    std::string got;
    garbage = false;
    for (size_t at = 0; at < wire.size() && !garbage;) {
        const std::span<std::byte> room = opener.room();
        const size_t bytes = std::min({portion, room.size(), wire.size() - at});
        std::copy_n(wire.begin() + static_cast<std::ptrdiff_t>(at), bytes, room.begin());
        opener.arrived(bytes);
        at += bytes;
        Bytes text;
        Result result;
        while ((result = opener.next(text)) == Result::text)
            got.append(reinterpret_cast<const char*>(text.data()), text.size());
        garbage = result == Result::garbage;
        EXPECT_TRUE(garbage || opener.at_boundary() || at < wire.size() || bytes > 0);
    }
    return got;
}

std::string text_of(size_t bytes) {
    std::string text(bytes, ' ');
    std::mt19937_64 random(bytes);
    for (char& c : text) c = static_cast<char>(random());
    return text;
}

class Records : public testing::TestWithParam<Suite> {};
INSTANTIATE_TEST_SUITE_P(By, Records, testing::ValuesIn(suites()),
                         [](const auto& suite) { return suite.param == Suite::aes ? "Aes" : "ChaCha20"; });

TEST_P(Records, AreOpenedInPortionsOfAnySize) {
    const Suite suite = GetParam();
    for (const size_t bytes : {size_t{1}, size_t{8}, size_t{kRecordText}, size_t{kRecordText} + 1, size_t{1} << 20}) {
        for (const size_t portion : {size_t{1}, size_t{3}, size_t{20}, size_t{4096}, size_t{1} << 20}) {
            if (bytes / portion > 100'000) continue;
            RecordSealer sealer = sealer_of(suite);
            const std::string text = text_of(bytes);
            const Wire wire = records_of(sealer, text);
            EXPECT_EQ(wire.size(), bytes + (bytes + kRecordText - 1) / kRecordText * kRecordAround);
            bool garbage = false;
            EXPECT_EQ(open_all(suite, kKey, wire, portion, garbage), text);
            EXPECT_FALSE(garbage);
            EXPECT_EQ(open_all(suite, kOtherKey, wire, portion, garbage), "");
            EXPECT_TRUE(garbage);
        }
    }
}

TEST_P(Records, EveryByteIsProtected) {
    const Suite suite = GetParam();
    RecordSealer sealer = sealer_of(suite);
    Wire wire = records_of(sealer, "the first of two");
    const size_t first = wire.size();
    const Wire second = records_of(sealer, "the second");
    wire.insert(wire.end(), second.begin(), second.end());
    for (size_t at = 0; at < wire.size(); ++at) {
        Wire changed = wire;
        changed[at] ^= std::byte{1};
        bool garbage = false;
        const std::string got = open_all(suite, kKey, changed, changed.size(), garbage);
        EXPECT_EQ(got, at < first ? "" : "the first of two") << at;
        // If a changed length is too large, the opener waits for more bytes, and fails only when they have arrived.
        EXPECT_TRUE(garbage || at == 0 || at == first || at == 1 || at == first + 1) << at;
    }
}

TEST_P(Records, CannotBeReplayedOmittedOrSwapped) {
    const Suite suite = GetParam();
    RecordSealer sealer = sealer_of(suite);
    std::vector<Wire> all;
    for (const char* text : {"one", "two", "six"}) all.push_back(records_of(sealer, text));
    const auto got = [&](std::initializer_list<int> order) {
        Wire wire;
        for (const int i : order)
            wire.insert(wire.end(), all[static_cast<size_t>(i)].begin(), all[static_cast<size_t>(i)].end());
        bool garbage = false;
        const std::string text = open_all(suite, kKey, wire, wire.size(), garbage);
        return text + (garbage ? "!" : "");
    };
    EXPECT_EQ(got({0, 1, 2}), "onetwosix");
    EXPECT_EQ(got({0, 0, 1}), "one!");
    EXPECT_EQ(got({0, 2}), "one!");
    EXPECT_EQ(got({1, 0}), "!");
    EXPECT_EQ(got({0, 1, 0}), "onetwo!");
}

/// Changes, cuts or extends the bytes of one direction; `before` is the number of earlier bytes.
using Change = std::function<void(Wire& bytes, uint64_t before)>;

/// The attacker on a connection's path: the dialing side connects to it.
class Proxy {
  public:
    explicit Proxy(uint16_t to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
        sockaddr_in any = loopback_port(0);
        socklen_t length = sizeof any;
        EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&any), sizeof any), 0);
        EXPECT_EQ(listen(listener_, 8), 0);
        EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &length), 0);
        port = ntohs(any.sin_port);
    }
    ~Proxy() {
        for (Flow& flow : flows_) close(flow.from);
        close(listener_);
    }
    void pass_on() {
        const int caller = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK);
        if (caller >= 0) {
            const int fd = socket(AF_INET, SOCK_STREAM, 0);
            const sockaddr_in there = loopback_port(to_);
            EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&there), sizeof there), 0);
            fcntl(fd, F_SETFL, O_NONBLOCK);
            flows_.push_back({caller, fd, true, 0, {}, false});
            flows_.push_back({fd, caller, false, 0, {}, false});
        }
        for (Flow& flow : flows_) {
            Wire bytes(64 * 1024);
            const ssize_t got = flow.waiting.empty() ? recv(flow.from, bytes.data(), bytes.size(), 0) : -1;
            if (got == 0 && !std::exchange(flow.over, true)) shutdown(flow.to, SHUT_WR);
            if (got > 0) {
                bytes.resize(static_cast<size_t>(got));
                Wire& seen = flow.upward ? up : down;
                seen.insert(seen.end(), bytes.begin(), bytes.end());
                const uint64_t before = std::exchange(flow.passed, flow.passed + bytes.size());
                if (const Change& change = flow.upward ? change_up : change_down) change(bytes, before);
                flow.waiting = bytes;
            }
            if (flow.waiting.empty()) continue;
            const ssize_t sent = send(flow.to, flow.waiting.data(), flow.waiting.size(), MSG_NOSIGNAL);
            if (sent > 0) flow.waiting.erase(flow.waiting.begin(), flow.waiting.begin() + sent);
            if (sent < 0 && errno != EAGAIN) flow.waiting.clear();
        }
    }

    uint16_t port = 0;
    Change change_up, change_down;  ///< functions that change the bytes from the connecting side, and those to it
    Wire up, down;                  ///< all bytes of each direction, before the attacker changed any

  private:
    struct Flow {
        int from, to;
        bool upward;
        uint64_t passed;
        Wire waiting;
        bool over;
    };
    uint16_t to_;
    int listener_;
    std::vector<Flow> flows_;
};

TcpOptions sealed() {
    TcpOptions options;
    options.cipher = test_cipher();
    options.connect_limit_ns = 200'000'000;
    return options;
}

/// A pair of processes whose connection passes through the attacker's proxy.
struct Watched {
    Pair pair{{rail(1)}, sealed()};
    std::unique_ptr<Proxy> proxy;

    void dial() {
        ConnectionOffer offer;
        ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
        proxy = std::make_unique<Proxy>(offer.port);
        offer.port = proxy->port;
        ASSERT_EQ(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    }
    bool until(const std::function<bool()>& condition) {
        return pair.until([&] {
            proxy->pass_on();
            return condition();
        });
    }
    bool open() {
        return until([&] { return pair.low.opened && pair.high.opened; });
    }
};

std::string shown(const Wire& wire) { return {reinterpret_cast<const char*>(wire.data()), wire.size()}; }

TEST(SealedTcp, FramesAndStreamsAreUnreadable) {
    Watched watched;
    watched.dial();
    ASSERT_TRUE(watched.open());
    Pair& pair = watched.pair;
    const std::string pattern = "a pattern that anybody would know again";
    ASSERT_EQ(pair.high.send(pattern), SendResult::done);
    std::vector<std::byte> data(3'000'000);
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(pattern[i % pattern.size()]);
    pair.low.incoming[1] = {1, std::vector<std::byte>(data.size()), {}, true};
    OutStream stream(source_of(pair.high, data, 1, 1));
    pair.high.tcp->add_stream(*pair.high.connection, stream);
    ASSERT_TRUE(
        watched.until([&] { return pair.low.incoming[1].coverage.bytes() == data.size() && pair.low.frames.size() == 1; }));
    EXPECT_EQ(pair.low.incoming[1].memory, data);
    EXPECT_EQ(pair.low.frames[0], pattern);
    EXPECT_GT(watched.proxy->up.size(), data.size());
    EXPECT_EQ(shown(watched.proxy->up).find("pattern"), std::string::npos);
    pair.high.tcp->remove_stream(stream, true);
}

// The attacker changes, removes or duplicates a byte somewhere after the greeting: the connection ends with an error text, and nothing
// forged is delivered.
TEST(SealedTcp, ChangedBytesEndTheConnection) {
    for (const uint64_t where : {0, 3, 4, 11, 60, 400, 2000}) {
        for (int how = 0; how < 3; ++how) {
            Watched watched;
            watched.dial();
            ASSERT_TRUE(watched.open());
            const uint64_t greeted = sizeof(SealedHello) + sizeof(GreetingProof);
            bool done = false;
            watched.proxy->change_up = [&](Wire& bytes, uint64_t before) {
                const uint64_t at = greeted + where;
                if (done || at < before || at >= before + bytes.size()) return;
                done = true;
                const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at - before);
                if (how == 0) *place ^= std::byte{0x10};
                if (how == 1) bytes.erase(place);
                if (how == 2) bytes.insert(place, *place);
            };
            Pair& pair = watched.pair;
            const std::string frame(256, 'f');
            ASSERT_TRUE(watched.until([&] {
                (void)pair.high.send(frame);
                return pair.low.broken > 0;
            })) << where
                << " " << how;
            EXPECT_NE(pair.low.failure.find("closed: received data is malformed, or was changed"), std::string::npos)
                << pair.low.failure;
            for (const std::string& got : pair.low.frames) EXPECT_EQ(got, frame);
        }
    }
}

TEST(SealedTcp, AnUnauthenticatedEndIsAFailure) {
    Watched watched;
    watched.dial();
    ASSERT_TRUE(watched.open());
    watched.pair.high.send("and more to come");
    ASSERT_TRUE(watched.until([&] { return watched.pair.low.frames.size() == 1; }));
    watched.proxy.reset();  // the proxy closes both sockets
    ASSERT_TRUE(watched.pair.until([&] { return watched.pair.low.broken && watched.pair.high.broken; }));
    EXPECT_EQ(watched.pair.low.ended + watched.pair.high.ended, 0);
}

// The attacker changes one byte of the greeting, each in turn, in either direction: the changed connection does not open.
TEST(SealedTcp, AChangedGreetingOpensNothing) {
    const size_t upward = sizeof(SealedHello) + sizeof(GreetingProof);
    for (size_t at = 0; at < upward + sizeof(SealedWelcome); at += 3) {
        Watched watched;
        watched.dial();
        const bool up = at < upward;
        (up ? watched.proxy->change_up : watched.proxy->change_down) = [&](Wire& bytes, uint64_t before) {
            const uint64_t place = up ? at : at - upward;
            if (place >= before && place < before + bytes.size()) bytes[place - before] ^= std::byte{1};
        };
        // If the connecting side proved itself first, its connection breaks when the listener notices the change.
        ASSERT_TRUE(watched.until([&] {
            return watched.pair.low.failed || watched.pair.high.failed || watched.pair.high.broken;
        })) << at;
        EXPECT_EQ(watched.pair.low.opened, 0) << at;
        EXPECT_TRUE(up || watched.pair.high.opened == 0) << at;
    }
}

TEST(SealedTcp, AReplayedGreetingOpensNothing) {
    Watched watched;
    watched.dial();
    ASSERT_TRUE(watched.open());
    Pair& pair = watched.pair;
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    const uint64_t sockets = pair.low.tcp->counters().sockets, strangers = pair.low.tcp->counters().rejected;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in to = loopback_port(offer.port);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to), 0);
    ASSERT_EQ(send(fd, watched.proxy->up.data(), watched.proxy->up.size(), 0), static_cast<ssize_t>(watched.proxy->up.size()));
    ASSERT_TRUE(watched.until([&] { return pair.low.tcp->counters().rejected == strangers + 1; }));
    EXPECT_EQ(pair.low.tcp->counters().sockets, sockets);
    close(fd);
    ASSERT_EQ(pair.high.send("undisturbed"), SendResult::done);
    ASSERT_TRUE(watched.until([&] { return pair.low.frames.size() == 1; }));
}

// If one side lacks AES, both use ChaCha20-Poly1305.
TEST(SealedTcp, BothSidesAgreeOnACipher) {
    std::unique_ptr<Cipher> poor;
    ASSERT_EQ(Cipher::load(poor), 0);
    poor->has_aes = false;
    for (int who = 0; who < 4; ++who) {
        Pair pair({rail(1)}, sealed());
        const auto replace = [&](Side& side, uint32_t rank) {
            pair.options.cipher = poor.get();
            side.tcp.reset();
            pair.start(side, rank, {rail(1)});
            side.connection = &side.tcp->add({7, 3 - rank}, 1003 - rank, &side, nullptr, SealKey{{1, 2, 3}});
        };
        if (who & 1) replace(pair.low, 1);
        if (who & 2) replace(pair.high, 2);
        pair.open();
        ASSERT_EQ(pair.high.send("up"), SendResult::done);
        ASSERT_EQ(pair.low.send("down"), SendResult::done);
        ASSERT_TRUE(pair.until([&] { return pair.low.frames.size() == 1 && pair.high.frames.size() == 1; })) << who;
    }
}

TEST(SealedTcp, APeerWithAnotherKeyIsRefused) {
    Pair pair({rail(1)}, sealed());
    pair.high.tcp->drop(*pair.high.connection);
    pair.high.connection = &pair.high.tcp->add({7, 1}, 1001, &pair.high, nullptr, SealKey{{9, 9}});
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    ASSERT_EQ(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    ASSERT_TRUE(pair.until([&] { return pair.high.failed > 0; }));
    EXPECT_NE(pair.high.failure.find("does not have the key"), std::string::npos) << pair.high.failure;
    EXPECT_EQ(pair.low.opened, 0);
}

}  // namespace
}  // namespace starling::network
