// Sessions on a simulated network: whatever it does, messages arrive once, whole and in turn.
#include <gtest/gtest.h>

#include "session_simulation.h"
#include "transport/ip/session.h"

namespace starling::ip {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr uint64_t kMessages = 20'000;
#else
constexpr uint64_t kMessages = 1'000'000;
#endif

constexpr uint64_t kSteps = 200'000'000;

TEST(Session, OneMessageEachWayIsOneDatagramEachWay) {
    Network network(1);
    Exchange exchange(network, 0, 8);
    uint64_t replies = 0;
    network.ends[1]->on_packet = [&](Session&, const shm::Header&, const std::byte*) {
        network.send(1, replies++, 8);
    };
    uint64_t rounds = 0;
    network.ends[0]->on_packet = [&](Session&, const shm::Header&, const std::byte*) {
        if (++rounds < 1000) network.send(0, rounds, 8);
    };
    network.send(0, 0, 8);
    while (rounds < 1000) ASSERT_TRUE(network.step());
    EXPECT_EQ(network.ends[0]->datagrams, 1000u);
    EXPECT_EQ(network.ends[1]->datagrams, 1000u);
    EXPECT_EQ(network.ends[0]->counters.repeated + network.ends[1]->counters.repeated, 0u);
}

TEST(Session, MillionMessagesThroughAThirdLost) {
    Network network(2);
    network.weather = {30, 5, 20 * kMicrosecond, 60 * kMicrosecond};
    Exchange exchange(network, kMessages / 2, 3000);
    EXPECT_TRUE(exchange.run(kSteps));
    EXPECT_FALSE(network.undecodable);
    EXPECT_GT(network.ends[0]->counters.repeated, kMessages / 100);
}

}  // namespace
}  // namespace starling::ip
