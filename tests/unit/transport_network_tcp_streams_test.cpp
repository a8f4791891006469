// Streams over TCP connections on the loopback device: in place or unpacked, several at once, over several sockets and rails.
#include <random>

#include "network_tcp_pair.h"
#include "session_simulation.h"
#include "transport/network/tcp/socket.h"
#include "transport/network/tcp/tcp.h"

namespace starling::network {
namespace {

std::vector<std::byte> pattern(size_t bytes, uint32_t seed) {
    std::vector<std::byte> result(bytes);
    std::mt19937_64 random(seed);
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        const uint64_t word = random();
        std::memcpy(result.data() + i, &word, 8);
    }
    return result;
}

TEST(TcpStreams, ArriveInPlaceAndUnpacked) {
    Pair pair;
    pair.open();
    const auto data = pattern(5'000'001, 1);
    for (uint32_t serial = 0; serial < 2; ++serial) {
        pair.high.incoming[serial] = {5, std::vector<std::byte>(data.size()), {}, serial == 0};
        OutStream stream(source_of(pair.low, data, serial, 5));
        pair.low.tcp->add_stream(*pair.low.connection, stream);
        ASSERT_TRUE(pair.until([&] { return pair.high.incoming[serial].coverage.bytes() == data.size(); }));
        EXPECT_EQ(pair.high.incoming[serial].memory, data);
        EXPECT_FALSE(stream.has_work());
        pair.low.tcp->remove_stream(stream);
    }
    EXPECT_EQ(pair.low.tcp->counters().fragment_bytes_sent, 2 * data.size());
    EXPECT_TRUE(pair.low.stranded.empty());
}

TEST(TcpStreams, DataThatMustBePacked) {
    Pair pair;
    pair.open();
    static std::vector<std::byte> data;
    data = pattern(1'000'003, 2);
    pair.high.incoming[3] = {1, std::vector<std::byte>(data.size()), {}, true};
    OutStream::StreamSource source = source_of(pair.low, data, 3, 1);
    source.memory = nullptr;
    source.pack = [](void*, uint64_t offset, std::byte* to, uint64_t bytes) { std::memcpy(to, data.data() + offset, bytes); };
    OutStream stream(source);
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    ASSERT_TRUE(pair.until([&] { return pair.high.incoming[3].coverage.bytes() == data.size(); }));
    EXPECT_EQ(pair.high.incoming[3].memory, data);
    pair.low.tcp->remove_stream(stream);
}

TEST(TcpStreams, FramesOvertakeALongStream) {
    Pair pair;
    pair.open();
    const auto data = pattern(64u << 20, 3);
    pair.high.incoming[1] = {1, std::vector<std::byte>(data.size()), {}, true};
    OutStream stream(source_of(pair.low, data, 1, 1));
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    int to_send = 20;
    const auto send_on = [&] {
        while (to_send > 0 && pair.low.send("in between") == SendResult::done) --to_send;
    };
    pair.low.on_room = send_on;
    send_on();
    ASSERT_TRUE(pair.until([&] { return pair.high.frames.size() == 20; }));
    EXPECT_LT(pair.high.incoming[1].coverage.bytes(), data.size() / 2);
    ASSERT_TRUE(pair.until([&] { return pair.high.incoming[1].coverage.bytes() == data.size(); }));
    pair.low.tcp->remove_stream(stream);
}

TEST(TcpStreams, SeveralAtOnceShareTheConnection) {
    Pair pair;
    pair.open();
    const auto data = pattern(16u << 20, 4);
    std::vector<std::unique_ptr<OutStream>> streams;
    for (uint32_t i = 0; i < 4; ++i) {
        pair.high.incoming[i] = {i, std::vector<std::byte>(data.size()), {}, true};
        streams.push_back(std::make_unique<OutStream>(source_of(pair.low, data, i, i)));
    }
    for (auto& stream : streams) pair.low.tcp->add_stream(*pair.low.connection, *stream);
    ASSERT_TRUE(pair.until([&] { return pair.high.incoming[3].coverage.bytes() >= data.size() / 2; }));
    EXPECT_LT(pair.high.incoming[0].coverage.bytes(), data.size());
    ASSERT_TRUE(pair.until([&] {
        for (auto& [serial, in] : pair.high.incoming)
            if (in.coverage.bytes() < data.size()) return false;
        return true;
    }));
    for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(pair.high.incoming[i].memory, data);
    for (auto& stream : streams) pair.low.tcp->remove_stream(*stream);
}

TEST(TcpStreams, ALateFragmentTouchesNoOtherRequest) {
    Pair pair;
    pair.open();
    const auto data = pattern(100'000, 5);
    pair.high.incoming[1] = {/*generation*/ 8, std::vector<std::byte>(data.size()), {}, true};
    OutStream stream(source_of(pair.low, data, 1, 7));
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    ASSERT_TRUE(pair.until([&] { return pair.high.pieces > 0; }));
    EXPECT_EQ(pair.high.incoming[1].memory, std::vector<std::byte>(data.size()));
    pair.low.tcp->remove_stream(stream);
}

TEST(TcpStreams, AnAbandonedStreamsMemoryIsNotRead) {
    Pair pair;
    pair.open();
    auto data = std::make_unique<std::vector<std::byte>>(pattern(64u << 20, 6));
    OutStream stream(source_of(pair.low, *data, 1, 1));
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    pair.low.tcp->remove_stream(stream);  // removed in the middle of a fragment, so a socket breaks
    data.reset();
    ASSERT_TRUE(pair.until([&] { return pair.low.broken == 1 && pair.high.broken == 1; }));
}

TEST(TcpStreams, AStrandedStreamResendsUnconfirmedBytes) {
    Pair pair;
    pair.open();
    const auto data = pattern(32u << 20, 7);
    OutStream stream(source_of(pair.low, data, 1, 1));
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    pair.high.tcp->drop(*pair.high.connection);
    ASSERT_TRUE(pair.until([&] { return pair.low.ended + pair.low.broken == 1; }));
    pair.low.tcp->drop(*pair.low.connection);
    EXPECT_EQ(pair.low.stranded, std::vector<OutStream*>{&stream});
    EXPECT_EQ(stream.waiting_bytes(), data.size());
    EXPECT_EQ(stream.connection, nullptr);
    pair.low.tcp->remove_stream(stream);
}

TEST(TcpRails, SeveralSocketsShareAStream) {
    TcpOptions options;
    options.sockets_per_rail = 2;
    Pair pair({rail(1), rail(2)}, options);
    pair.open();
    ASSERT_TRUE(pair.until([&] { return pair.low.tcp->counters().sockets == 4 && pair.high.tcp->counters().sockets == 4; }));
    const auto data = pattern(8u << 20, 8);
    pair.high.incoming[1] = {1, std::vector<std::byte>(data.size()), {}, true};
    OutStream stream(source_of(pair.low, data, 1, 1));
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    ASSERT_TRUE(pair.until([&] { return pair.high.incoming[1].coverage.bytes() == data.size(); }));
    EXPECT_EQ(pair.high.incoming[1].memory, data);
    pair.low.tcp->remove_stream(stream);
}

TEST(TcpRails, FailoverToANewRailWhenOneIsRemoved) {
    Pair pair({rail(1), rail(2)});
    pair.open();
    ASSERT_TRUE(pair.until([&] { return pair.low.tcp->counters().sockets == 2; }));
    const auto data = pattern(64u << 20, 9);
    pair.high.incoming[1] = {1, std::vector<std::byte>(data.size()), {}, true};
    OutStream stream(source_of(pair.low, data, 1, 1));
    pair.low.tcp->add_stream(*pair.low.connection, stream);
    pair.polls(3);
    const TcpRail second[] = {rail(2)}, third[] = {rail(2), rail(3)};
    pair.low.tcp->set_rails(second);
    ASSERT_TRUE(pair.until([&] { return pair.high.incoming[1].coverage.bytes() == data.size(); }));
    EXPECT_EQ(pair.high.incoming[1].memory, data);
    EXPECT_EQ(pair.low.rerouted + pair.high.rerouted, 2);
    EXPECT_EQ(pair.low.broken + pair.high.broken, 0);
    pair.low.tcp->remove_stream(stream);
    ASSERT_TRUE(pair.until([&] { return pair.high.tcp->counters().sockets == 1; }));

    pair.high.tcp->set_rails(third);
    pair.low.tcp->set_rails(third);  // the side that listens notifies the side that dialed
    ASSERT_TRUE(pair.until([&] { return pair.low.tcp->counters().sockets == 2 && pair.high.tcp->counters().sockets == 2; }));
    EXPECT_EQ(pair.low.send("on"), SendResult::done);
    ASSERT_TRUE(pair.until([&] { return pair.high.frames.size() == 1; }));
}

TEST(TcpRails, SocketsToARemovedInterfaceOfThePeerAreClosedAtOnce) {
    Pair pair({rail(1), rail(2)});
    pair.open();
    ASSERT_TRUE(pair.until([&] { return pair.low.tcp->counters().sockets == 2; }));
    pair.low.tcp->lose_remote(*pair.low.connection, loopback(1));
    pair.low.tcp->poll(now_ns());
    EXPECT_EQ(pair.low.tcp->counters().sockets, 1u);
    EXPECT_EQ(pair.low.rerouted, 1) << "the frames move, because the first socket has carried them";
    EXPECT_EQ(pair.low.send("on"), SendResult::done);
    ASSERT_TRUE(pair.until([&] { return pair.high.frames.size() == 1; }));
    EXPECT_EQ(pair.low.broken + pair.high.broken, 0);
    for (const uint8_t last : {1, 2}) pair.low.tcp->lose_remote(*pair.low.connection, loopback(last));
    pair.low.tcp->poll(now_ns());
    EXPECT_EQ(pair.low.broken, 1);
    EXPECT_NE(pair.low.failure.find("interface"), std::string::npos) << pair.low.failure;
}

TEST(TcpRails, WithoutRailsTheConnectionIsBroken) {
    Pair pair;
    pair.open();
    pair.low.tcp->set_rails({});
    ASSERT_TRUE(pair.until([&] { return pair.low.broken == 1 && pair.high.broken + pair.high.ended == 1; }));
    EXPECT_NE(pair.low.failure.find("127.0.0.1"), std::string::npos) << pair.low.failure;
}

TEST(TcpRails, OneReachableAddressIsEnoughOverRouters) {
    Pair pair({{loopback(1), 0}});  // a rail without a netmask shares no network with a peer
    ConnectionOffer offer;
    ASSERT_EQ(pair.low.tcp->offer(*pair.low.connection, offer), 0);
    offer.address[0] = loopback(1);
    offer.address[1] = loopback(2);
    offer.addresses = 2;
    ASSERT_EQ(pair.high.tcp->dial(*pair.high.connection, offer), 0);
    ASSERT_TRUE(pair.until([&] { return pair.low.opened && pair.high.opened; }));
    pair.polls(200);
    EXPECT_EQ(pair.high.tcp->counters().sockets, 1u);
    EXPECT_EQ(pair.low.tcp->counters().sockets, 1u);
}

/// A stream that stalls. Its sender sleeps until its next deadline, in simulated time.
class Stalled {
  public:
    explicit Stalled(bool answers, bool kernel_repairs = false) : network(1) {
        TcpOptions options;
        options.examine = [](int, uint64_t) {
            return Health{.outstanding = true, .unacknowledged = true, .repairs = repairs, .acked = 1};
        };
        repairs = kernel_repairs;
        pair = std::make_unique<Pair>(std::vector{rail(1)}, options);
        pair->open();
        // Let the session measure its round-trip time, without which it cannot probe.
        network.send(0, 1, 8);
        network.run_until(network.now + 10 * kMillisecond);
        network.now = start = now_ns();
        pair->low.connection->session = &network.session(0);
        if (answers)
            pair->low.on_request = [this] {
                network.session(0).request_ack(network.now);
                network.arm(0);
            };
    }
    /// Returns the time until the connection was doubted; at most a second.
    uint64_t run() {
        const auto data = pattern(100'000, 7);
        OutStream stream(source_of(pair->low, data, 1, 1));
        pair->low.tcp->add_stream(*pair->low.connection, stream);
        Tcp& tcp = *pair->low.tcp;
        for (uint64_t now = start; pair->low.paused == 0 && now < start + 1000 * kMillisecond; ++looks) {
            now = std::max(now + 1, tcp.next_deadline());
            network.run_until(now);
            tcp.poll(now);
        }
        tcp.remove_stream(stream);
        return network.now - start;
    }
    Network network;
    std::unique_ptr<Pair> pair;
    uint64_t start = 0;
    int looks = 0;
    static inline bool repairs = false;
};

TEST(TcpStreams, ASleeperDetectsAStalledStreamByTimeout) {
    Stalled stalled(true);
    EXPECT_LT(stalled.run(), 2 * TcpOptions{}.patience_ns);
    EXPECT_EQ(stalled.pair->low.paused, 1);
}

TEST(TcpStreams, AStallIsDetectedWithoutWaitingForALostRetransmission) {
    Stalled stalled(true, true);
    EXPECT_LT(stalled.run(), TcpOptions{}.patience_ns / 2);
    EXPECT_EQ(stalled.pair->low.paused, 1);
}

TEST(TcpStreams, AComputingPeerIsNotDoubtedAndSeldomChecked) {
    Stalled stalled(false);
    stalled.run();
    EXPECT_EQ(stalled.pair->low.paused, 0);
    EXPECT_LT(stalled.looks, 300);
}

}  // namespace
}  // namespace starling::network
