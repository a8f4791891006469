// The transport contract between processes on hosts with InfiniBand, over the verbs plugin on its fake library. Cases: datagrams, datagrams
// that the network loses and reorders, a connection, and a ring in the receiver's memory.
#include "plugins/verbs/plugin.h"

#include "base/counters.h"
#include "fake/fabric.h"
#include "transport/verbs/plugin.h"
#include "transport_contract.h"

namespace starling::transport {
namespace {

/// The two fake devices. They exist before the test opens the ends of the transport, and all live until the process ends.
struct Adapters {
    Adapters(const fake::Weather& weather, const char* rings) {
        static bool added = false;
        if (!std::exchange(added, true)) {
            fake::reset();
            fake::add({.name = "fake0"});
            fake::add({.name = "fake1"});
        }
        fake::set(weather);
        verbs::use_plugin(&starling_verbs_plugin);
        set_variable("STARLING_MAX_DIRECT", rings);
    }
};

class VerbsWorld : Adapters, public NetworkWorld {
  public:
    explicit VerbsWorld(bool connects = false, bool rings = false, const fake::Weather& weather = {})
        : Adapters(weather, rings ? "16" : "0"), connects_(connects), rings_(rings) {}

    bool is_woken(Transport& end, int ms) override {
        if (!end.wait_source()->arm()) return true;
        const bool woken = NetworkWorld::is_woken(end, ms);
        end.wait_source()->disarm();
        return woken;
    }

    void begin(Path& path, const std::function<bool()>& send_one, const std::function<Path*()>& back) override {
        uint64_t sent = 0;
        const auto send_until_it_counts = [&](const auto& counter) {
            const uint64_t before = counter;
            ASSERT_TRUE(poll_until([&] { return (sent += send_one(), counter > before); }));
        };
        send_until_it_counts(counters.messages_verbs);
        if (connects_) {
            open_connection(path, *back());
            ASSERT_TRUE(poll_until([&] { return !at_sender().news.empty() && !at_receiver().news.empty(); }));
            send_until_it_counts(counters.messages_rc);
        }
        if (rings_) send_until_it_counts(counters.verbs_transfers);
        ASSERT_TRUE(poll_until([&] { return path.idle() && at_receiver().got.size() == sent; }));
    }

  private:
    const bool connects_, rings_;
};

std::unique_ptr<World> datagrams() { return std::make_unique<VerbsWorld>(); }
std::unique_ptr<World> bad_network() {
    return std::make_unique<VerbsWorld>(false, false, fake::Weather{.lose = 5, .twice = 5, .late = 10, .mix_queues = true});
}
std::unique_ptr<World> connections() { return std::make_unique<VerbsWorld>(true); }
std::unique_ptr<World> rings() { return std::make_unique<VerbsWorld>(true, true); }

const Setup kDatagrams{"datagrams", "ip", datagrams}, kBadNetwork{"bad_network", "ip", bad_network};
const Setup kConnections{"connections", "ip", connections}, kRings{"rings", "ip", rings};

INSTANTIATE_TEST_SUITE_P(Verbs, Contract, ::testing::Values(kDatagrams, kBadNetwork, kConnections, kRings), name_of);
INSTANTIATE_TEST_SUITE_P(Verbs, UnconnectedContract, ::testing::Values(kDatagrams, kBadNetwork), name_of);

}  // namespace
}  // namespace starling::transport
