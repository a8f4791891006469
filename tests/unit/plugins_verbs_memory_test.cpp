// A port's memory by the number of peers: constant for datagrams, one queue per connection.
#include "plugins/verbs/plugin.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "verbs_pair.h"

namespace starling::verbs {
namespace {

constexpr uint64_t kConnection = 17'408;  ///< docs/verbs.md
constexpr uint64_t kRegistered = 1'327'104;
constexpr uint64_t kQueues = 133'120;  ///< memory of a port without connections

class VerbsMemoryOfPeers : public VerbsPair {
  protected:
    static constexpr int kDevices = 16;

    void SetUp() override {
        VerbsPair::SetUp();
        fake::add({.name = "mine"});
        a.port = open("mine");
        ASSERT_TRUE(a.port) << said_;
    }
    void TearDown() override {
        for (Port* port : peers) port->close();
        VerbsPair::TearDown();
    }
    /// Opens the ports of `count` simulated processes, on up to 16 hosts, with few buffers each.
    void meet(size_t count) {
        options = {.receive_buffers = 16, .send_buffers = 4};
        while (peers.size() < count) {
            const std::string name = "peer" + std::to_string(peers.size() % kDevices);
            if (peers.size() < kDevices) fake::add({.name = name});
            peers.push_back(open(name));
            ASSERT_TRUE(peers.back()) << said_;
        }
    }
    std::vector<Port*> peers;
};

TEST_F(VerbsMemoryOfPeers, DatagramMemoryIsIndependentOfThePeerCount) {
    for (const size_t count : {1u, 16u, 256u}) {
        meet(count);
        for (Port* peer : peers) {
            ASSERT_EQ(send(a.port, peer->address(), "a datagram"), WorkStatus::done);
            a.poll();
        }
        const PortCounters now = a.port->counters();
        EXPECT_EQ(now.registered_bytes, kRegistered);
        EXPECT_EQ(now.queue_bytes, kRegistered);
        EXPECT_EQ(now.queue_memory, kQueues);
        EXPECT_EQ(now.address_handles, std::min<size_t>(count, kDevices));
    }
}

TEST_F(VerbsMemoryOfPeers, EachConnectionUsesAQueue) {
    std::vector<Queue*> queues;
    const auto expect = [&](uint64_t completions) {
        const PortCounters now = a.port->counters();
        EXPECT_EQ(now.queues, queues.size());
        EXPECT_EQ(now.registered_bytes, kRegistered);
        EXPECT_EQ(now.queue_memory, kQueues + queues.size() * kConnection + completions * 64);
    };
    meet(256);
    for (Port* peer : peers) {
        queues.push_back(a.port->make_queue(nullptr));
        ASSERT_TRUE(queues.back()) << a.port->problem();
        Queue* theirs = peer->make_queue(nullptr);
        ASSERT_TRUE(theirs);
        ASSERT_TRUE(queues.back()->connect(theirs->address()) && theirs->connect(queues.back()->address()));
        if (queues.size() == 1 || queues.size() == 16) expect(0);
    }
    // The completion queue started with 16 entries and was doubled on demand.
    const uint64_t more = 1408 * (16 - 1);
    expect(more);
    while (!queues.empty()) {
        queues.back()->close(false);
        queues.pop_back();
    }
    expect(more);
}

}  // namespace
}  // namespace starling::verbs
