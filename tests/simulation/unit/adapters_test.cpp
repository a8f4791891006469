// Tests the arithmetic of the queues of adapters and cables.
#include "../adapters.h"

#include <gtest/gtest.h>

namespace starling::simulation {
namespace {

constexpr uint64_t kLatency = 2'000;

/// A network with adapters of 1 byte per ns, and packets of 1,000 bytes with headers of 10.
Prices network() {
    Prices all;
    all.exact = true;
    all.of.adapter_bytes_per_ns = 1;
    all.of.adapter_packet = 1'000;
    all.of.adapter_header = 10;
    return all;
}

TEST(Adapters, AMessageTakesItsLatencyAndItsTransmission) {
    const Prices of = network();
    Adapters all(2, of);
    const Adapters::Transfer one = all.send(0, 1, 500, 10'000, kLatency);
    EXPECT_EQ(one.sent, 10'510u);
    EXPECT_EQ(one.arrives, 12'510u);
}

TEST(Adapters, EveryPacketHasHeaders) {
    const Prices of = network();
    Adapters all(2, of);
    EXPECT_EQ(all.send(0, 1, 2'001, 0, kLatency).arrives, kLatency + 2'031);
    EXPECT_EQ(all.send(1, 0, 0, 0, kLatency).arrives, kLatency + 10) << "a message without data is a packet";
}

TEST(Adapters, MessagesOfOneSenderWaitForEachOther) {
    const Prices of = network();
    Adapters all(3, of);
    EXPECT_EQ(all.send(0, 1, 990, 0, kLatency).arrives, kLatency + 1'000);
    EXPECT_EQ(all.send(0, 2, 990, 100, kLatency).arrives, kLatency + 2'000) << "also to another receiver";
    EXPECT_EQ(all.send(0, 1, 990, 5'000, kLatency).arrives, kLatency + 6'000) << "the adapter has become free";
}

TEST(Adapters, MessagesOfTwoSendersWaitAtTheReceiver) {
    const Prices of = network();
    Adapters all(3, of);
    EXPECT_EQ(all.send(0, 2, 990, 0, kLatency).arrives, kLatency + 1'000);
    const Adapters::Transfer second = all.send(1, 2, 990, 0, kLatency);
    EXPECT_EQ(second.sent, 1'000u);
    EXPECT_EQ(second.arrives, kLatency + 2'000);
}

TEST(Adapters, BothDirectionsAreIndependent) {
    const Prices of = network();
    Adapters all(2, of);
    EXPECT_EQ(all.send(0, 1, 990, 0, kLatency).arrives, all.send(1, 0, 990, 0, kLatency).arrives);
}

TEST(Adapters, HostsOfALeafSwitchShareItsCables) {
    Prices of = network();
    of.has_switches = true;
    of.of.switches_hosts = 2;
    of.of.switches_bytes_per_ns = 0.5;
    of.of.switches_latency = 100;
    Adapters all(4, of);
    EXPECT_EQ(all.send(0, 1, 990, 0, kLatency).arrives, kLatency + 1'000) << "within the switch";
    Adapters apart(4, of);
    EXPECT_EQ(apart.send(0, 2, 990, 0, kLatency).arrives, kLatency + 100 + 2'000) << "the cable is slower than the adapter";
    EXPECT_EQ(apart.send(1, 3, 990, 0, kLatency).arrives, kLatency + 100 + 4'000) << "other hosts, but the same cable";
}

TEST(Adapters, AMessageToManyPassesItsSendersAdapterOnce) {
    const Prices of = network();
    Adapters all(4, of);
    Adapters::Sending one = all.begin(0, 990, 0, kLatency);
    for (const uint32_t to : {1, 2, 3}) EXPECT_EQ(all.reach(one, to), kLatency + 1'000) << "all receive at once";
    EXPECT_EQ(all.send(0, 1, 990, 0, kLatency).arrives, kLatency + 2'000) << "the next message waits for one";
    EXPECT_EQ(all.send(2, 1, 990, 0, kLatency).arrives, kLatency + 3'000) << "each receiver is busy with its copy";
}

TEST(Adapters, AMessageToManyPassesEachCableBetweenSwitchesOnce) {
    Prices of = network();
    of.has_switches = true;
    of.of.switches_hosts = 2;
    of.of.switches_bytes_per_ns = 0.5;
    of.of.switches_latency = 100;
    Adapters all(6, of);
    Adapters::Sending one = all.begin(0, 990, 0, kLatency);
    EXPECT_EQ(all.reach(one, 1), kLatency + 1'000);
    for (const uint32_t to : {2, 3, 4, 5}) EXPECT_EQ(all.reach(one, to), kLatency + 100 + 2'000);
    EXPECT_EQ(all.send(1, 3, 990, 0, kLatency).arrives, kLatency + 100 + 4'000) << "each cable has carried one copy";
}

TEST(ConnectionCache, RemembersTheMostRecentlyUsedConnections) {
    ConnectionCache cache(2);
    EXPECT_FALSE(cache.use(1));
    EXPECT_FALSE(cache.use(2));
    EXPECT_TRUE(cache.use(1));
    EXPECT_FALSE(cache.use(3));
    EXPECT_TRUE(cache.use(1)) << "2 was used least recently";
    EXPECT_FALSE(cache.use(2));
}

TEST(Adapters, AMissInADevicesCacheDelaysAMessage) {
    Prices of = network();
    of.has_cache = true;
    of.of.cache_connections = 1;
    of.of.cache_miss = 300;
    Adapters all(2, of);
    EXPECT_EQ(all.look_up(0, 7, 1, 8), 600u) << "at both ends";
    EXPECT_EQ(all.look_up(0, 7, 1, 8), 0u);
    EXPECT_EQ(all.look_up(0, 9, 1, 8), 300u);
    EXPECT_EQ(all.misses, 3u);
}

}  // namespace
}  // namespace starling::simulation
