// Probes of unused paths: each measures its own path, whatever else is in transit, and an unanswered one delays nothing.
#include <gtest/gtest.h>

#include "session_simulation.h"
#include "transport/network/session/session.h"

namespace starling::network {
namespace {

/// Two processes that have met by rail 0; other rails become preferred paths, as those by verbs.
struct Met {
    Network network{1};
    uint64_t got[2] = {}, sent[2] = {};

    Met() {
        for (int i = 0; i < 2; ++i) {
            network.set_rails(i, 1);
            network.ends[i]->on_packet = [this, i](Session&, const packet::Header& header, const std::byte*) {
                EXPECT_EQ(header.message.context, got[i]);
                ++got[i];
            };
        }
        for (int i = 0; i < 2; ++i) send(i, 8);
        network.run_until(network.now + 10 * kMillisecond);
    }
    bool send(int from, uint32_t bytes) {
        const bool taken = network.send(from, sent[from], bytes);
        sent[from] += taken;
        return taken;
    }
    void prefer(int which, int rail = 1) {
        network.session(which).set_path(rail, Network::preferred_route(rail), 1472);
        network.arm(which);
    }
    const SessionPath& path(int which, int rail = 1) { return network.session(which).path(rail); }
    /// Returns the time in ns until the end sends its next probe.
    uint64_t until_probe(int which) { return network.session(which).deadline() - network.now; }
};

TEST(SessionProbe, IsAnsweredThoughABurstFollows) {
    Met met;
    // Probes and a burst arrive while end 1 does not poll. It receives all of them in one poll and answers once.
    for (const int rail : {1, 2}) met.prefer(1, rail);
    met.network.ends[1]->listening = false;
    for (const int rail : {1, 2}) met.prefer(0, rail);
    met.network.session(0).on_timer(met.network.now);
    for (int i = 0; i < 10; ++i) ASSERT_TRUE(met.send(0, 1000));
    met.network.run_until(met.network.now + kMillisecond);
    for (const int rail : {1, 2}) EXPECT_FALSE(met.path(0, rail).usable());
    met.network.listen(1);
    met.network.run_until(met.network.now + kMillisecond);
    EXPECT_EQ(met.got[1], met.sent[0]);
    for (const int rail : {1, 2}) {
        EXPECT_TRUE(met.path(0, rail).usable());
        EXPECT_TRUE(met.path(0, rail).proven());
    }
}

TEST(SessionProbe, OfADeadPathDelaysNothing) {
    Met met;
    met.network.rail_dead[1] = true;
    for (int i = 0; i < 2; ++i) met.prefer(i);
    met.network.run_until(met.network.now + 10 * kSecond);
    const uint8_t probes = met.path(0).probes;
    ASSERT_GT(probes, 3u);
    // Before the next probe, send more datagrams than the list of datagrams in flight has records.
    ASSERT_GT(met.until_probe(0), kSecond);
    const uint64_t begun = met.network.ends[0]->datagrams;
    while (met.sent[0] < 2 * Flight::kMost) {
        while (met.sent[0] < 2 * Flight::kMost && met.send(0, 1000)) {}
        if (!met.network.step()) break;
    }
    met.network.run_until(met.network.now + 10 * kMillisecond);
    EXPECT_EQ(met.got[1], met.sent[0]);
    EXPECT_GT(met.network.ends[0]->datagrams - begun, Flight::kMost);
    EXPECT_EQ(met.path(0).probes, probes);
    EXPECT_EQ(met.network.session(0).in_flight(), 0u);
}

TEST(SessionProbe, OfAReturningPathMakesItUsable) {
    Met met;
    for (int i = 0; i < 2; ++i) met.prefer(i);
    met.network.run_until(met.network.now + kSecond);
    ASSERT_TRUE(met.path(0).usable());
    met.network.rail_dead[1] = true;
    ASSERT_TRUE(met.send(0, 1000));
    met.network.run_until(met.network.now + kSecond);
    EXPECT_EQ(met.got[1], met.sent[0]);
    EXPECT_FALSE(met.path(0).usable());
    met.network.rail_dead[1] = false;
    met.network.run_until(met.network.now + kSecond);
    EXPECT_TRUE(met.path(0).usable());
    EXPECT_EQ(met.network.session(0).in_flight(), 0u);
}

}  // namespace
}  // namespace starling::network
