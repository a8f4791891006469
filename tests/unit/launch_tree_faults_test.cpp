// Trees of daemons that die: living daemons stay in the tree and lose no message, and only dead ones are reported.
#include "launch/tree/tree.h"

#include "base/config.h"
#include "tree_forest.h"

namespace starling::launch {
namespace {

// Numbers every message between two hosts, and checks at the receiver that none is missing, duplicated or late.
class Traffic {
  public:
    explicit Traffic(Forest& forest) : forest_(forest) {
        forest.on_message = [this](TreeHostId at, const TreeMessage& message) { receive(at, message); };
    }

    void send(TreeHostId from, TreeHostId to, Urgency urgency) {
        const int number = ++sent_[{from, to, urgency}];
        forest_.at(from).send(to, text(number, urgency) + std::string(forest_.random() % 3000, '.'), urgency);
    }

    void broadcast() {
        ++broadcasts_;
        for (TreeHostId host = 1; host < forest_.root_inside->hosts.size(); ++host) broadcast_seen_[host];
        forest_.root->broadcast("all " + std::to_string(broadcasts_) + " ");
    }

    // Sends some messages of every form, from living hosts to hosts that may be dead.
    void some() {
        const auto living = forest_.living();
        if (living.empty()) return;
        for (int i = 0; i < 8; ++i) {
            const TreeHostId from = forest_.random() % 4 == 0 ? kRootHost : forest_.any_living();
            const TreeHostId to = forest_.random() % 4 == 0 ? kRootHost : forest_.any_living();
            if (from != to) send(from, to, forest_.random() % 2 ? Urgency::control : Urgency::bulk);
        }
        if (forest_.random() % 4 == 0) broadcast();
    }

    // Returns whether all messages between living hosts have arrived.
    bool complete() const {
        for (const auto& [key, number] : sent_) {
            const auto& [from, to, urgency] = key;
            if (!forest_.lives(from) || !forest_.lives(to)) continue;
            const auto seen = seen_.find(key);
            if (seen == seen_.end() || seen->second != number) return false;
        }
        for (const TreeHostId host : forest_.living()) {
            const auto seen = broadcast_seen_.find(host);
            if (seen != broadcast_seen_.end() && seen->second != broadcasts_) return false;
        }
        return true;
    }

  private:
    static std::string text(int number, Urgency urgency) {
        return (urgency == Urgency::bulk ? "bulk " : "one ") + std::to_string(number) + " ";
    }

    void receive(TreeHostId at, const TreeMessage& message) {
        const std::string payload(message.payload.substr(0, 20));
        const size_t space = payload.find(' ');
        const int number = std::atoi(payload.c_str() + space);
        if (payload.starts_with("all")) {
            EXPECT_EQ(number, ++broadcast_seen_[at]) << "broadcast at " << at;
            return;
        }
        const Urgency urgency = payload.starts_with("bulk") ? Urgency::bulk : Urgency::control;
        EXPECT_EQ(number, (++seen_[{message.from, at, urgency}])) << "from " << message.from << " to " << at;
    }

    using Key = std::tuple<TreeHostId, TreeHostId, Urgency>;
    Forest& forest_;
    std::map<Key, int> sent_, seen_;
    int broadcasts_ = 0;
    std::map<TreeHostId, int> broadcast_seen_;
};

// The hosts' kernels are watched, for which all daemons here share one. Only a closed connection of a dead daemon has an effect.
void detect_fast(Forest& forest) { forest.settings.host_silence_limit = std::chrono::seconds(60); }

// Checks the invariants of a tree that has settled.
void expect_truth(const Forest& forest) {
    for (const auto& [host, why] : forest.lost)
        EXPECT_TRUE(forest.killed.contains(host)) << "host " << host << " lives, but: " << why;
    for (const auto& [host, why] : forest.failed) ADD_FAILURE() << host << " failed: " << why;
    for (const TreeHostId host : forest.suspected) ADD_FAILURE() << "host " << host << " is still doubtful";
    EXPECT_TRUE(forest.orphaned.empty());
}

// Waits until no host is doubted. If the machine is busy for some heartbeats, every daemon is doubted for a moment.
void calm_down(Forest& forest) {
    forest.step("no host is doubted", {}, [&forest] { return forest.suspected.empty(); });
}

bool all_dead_are_known(const Forest& forest) {
    for (const TreeHostId host : forest.killed) {
        if (!forest.lost.contains(host)) return false;
    }
    return true;
}

class Seeds : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Tree, Seeds, ::testing::Range(1u, 5u));  // one seed per fanout: these tests wait most of their time

TEST_P(Seeds, DaemonsDieWhileMessagesFlow) {
    constexpr uint32_t kFanouts[] = {2, 3, 5, 16};
    const size_t n = 64;
    Forest forest(kFanouts[GetParam() % 4], GetParam());
    if (GetParam() > 2) detect_fast(forest);
    forest.plant();
    Traffic traffic(forest);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(n)); }, [&] { return forest.ready.size() == n; });
    int turns = 0;
    forest.step("deaths", {}, [&] {
        for (int i = 0; i < 3; ++i) traffic.some();
        if (forest.random() % 10 == 0 && forest.nodes.size() > 8) forest.kill(forest.any_living());
        return ++turns == 200;
    });
    forest.step("settle", {}, [&] { return traffic.complete() && all_dead_are_known(forest); });
    // Send messages of every form again: the remaining tree works as a whole.
    forest.step(
        "again",
        [&] {
            traffic.broadcast();
            for (const TreeHostId host : forest.living()) {
                traffic.send(host, kRootHost, Urgency::control);
                const TreeHostId other = forest.any_living();
                if (other != host) traffic.send(host, other, Urgency::control);
            }
        },
        [&] { return traffic.complete(); });
    calm_down(forest);
    std::vector<TreeHostId> left{99};
    forest.step(
        "end",
        [&] {
            expect_truth(forest);
            forest.root->shut_down(std::chrono::seconds(30), [&](const auto& hosts) { left = hosts; });
        },
        [&] { return forest.nodes.empty() && left.empty(); });
    forest.run();
}

TEST_P(Seeds, DaemonsDieWhileTheTreeGrows) {
    const size_t n = 64;
    Forest forest(GetParam() % 2 ? 2 : 4, GetParam());
    forest.most_delay_ms = 20;
    forest.plant();
    Traffic traffic(forest);
    size_t deaths = 0;
    forest.step(
        "start", [&] { forest.root->grow(forest.names(n)); },
        [&] {
            if (deaths < 6 && !forest.nodes.empty() && forest.random() % 3 == 0) {
                const TreeHostId host = forest.any_living();
                // Kill only a daemon that has connected; before that it counts as failed to start. Kill none twice: an early death costs
                // one of few attempts to start.
                if (forest.killed.contains(host) || !forest.nodes.at(host).inside->uplink.connection) return false;
                forest.kill(host);
                ++deaths;
            }
            return forest.ready.size() == n;
        });
    forest.step("settle", {}, [&] {
        for (TreeHostId host = 1; host <= n; ++host) {
            if (!forest.lives(host) && !forest.lost.contains(host)) return false;
        }
        return true;
    });
    forest.step(
        "use it",
        [&] {
            traffic.broadcast();
            for (const TreeHostId host : forest.living()) traffic.send(host, kRootHost, Urgency::control);
            for (const TreeHostId host : forest.living()) traffic.send(kRootHost, host, Urgency::control);
        },
        [&] { return traffic.complete(); });
    calm_down(forest);
    forest.run();
    expect_truth(forest);
}

TEST(Tree, ADeadRootEndsAllNodes) {
    Forest forest(2);
    forest.plant();
    forest.step(
        "start", [&] { forest.root->grow(forest.names(30)); }, [&] { return forest.ready.size() == 30; });
    forest.step(
        "death",
        [&] {
            forest.root.reset();
            forest.root_inside = nullptr;
        },
        [&] { return forest.nodes.empty(); });
    forest.run();
    EXPECT_EQ(forest.orphaned.size(), 30u);
}

TEST(Tree, AWholeLineOfAncestorsDiesAtOnce) {
    Forest forest(1);  // a chain: every host has one child
    forest.plant();
    Traffic traffic(forest);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(10)); }, [&] { return forest.ready.size() == 10; });
    forest.step(
        "death",
        [&] {
            for (int i = 0; i < 50; ++i) {
                traffic.broadcast();
                traffic.send(kRootHost, 10, Urgency::bulk);
                traffic.send(10, kRootHost, Urgency::bulk);
                traffic.send(10, 1, Urgency::control);
            }
            for (TreeHostId host = 3; host <= 8; ++host) forest.kill(host);
        },
        [&] { return forest.lost.size() == 6 && traffic.complete(); });
    calm_down(forest);
    forest.run();
    expect_truth(forest);
}

void break_connections_of_living_daemons(bool fast) {
    Forest forest(2, 7);
    if (fast) detect_fast(forest);
    forest.settings.grace = std::chrono::minutes(1);  // a stalled test process must not lose a host
    forest.plant();
    Traffic traffic(forest);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(30)); }, [&] { return forest.ready.size() == 30; });
    int turns = 0;
    forest.step("break", {}, [&] {
        traffic.some();
        if (turns % 5 == 0) {
            auto& inside = *forest.nodes.at(forest.any_living()).inside;
            if (inside.uplink.connection) inside.uplink.connection->lose("cut by the test");
        }
        return ++turns == 150;
    });
    forest.step("settle", {}, [&] { return traffic.complete(); });
    calm_down(forest);
    forest.run();
    expect_truth(forest);
    EXPECT_TRUE(forest.lost.empty());
    EXPECT_FALSE(forest.ever_suspected.empty());
}

TEST(Tree, ABrokenConnectionBetweenLivingDaemonsLosesNoMessage) { break_connections_of_living_daemons(false); }

TEST(Tree, ABrokenConnectionBetweenLivingDaemonsLosesNoHostIfDetectionIsFast) { break_connections_of_living_daemons(true); }

TEST(Tree, AKilledDaemonIsLostBeforeTheTimeForReconnectingIsOver) {
    Forest forest(2);
    detect_fast(forest);
    forest.settings.grace = std::chrono::hours(1);
    forest.plant();
    Traffic traffic(forest);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(14)); }, [&] { return forest.ready.size() == 14; });
    // Hosts 3 and 4 are below host 2, and find another parent.
    forest.step(
        "death", [&] { forest.kill(2); }, [&] { return forest.lost.contains(2); });
    forest.step(
        "others", [&] { traffic.broadcast(); }, [&] { return traffic.complete(); });
    forest.step(
        "another death", [&] { forest.kill(14); }, [&] { return forest.lost.contains(14); });
    calm_down(forest);
    forest.run();
    expect_truth(forest);
    EXPECT_EQ(forest.lost.size(), 2u);
}

TEST(Tree, TheUsersHeartbeatIsNotSlowerThanFastDetection) {
    ASSERT_EQ(set_variable("STARLING_HEARTBEAT_MS", "1000", VariableSource::environment), 0);
    TreeSettings settings;
    settings.detect_fast();
    EXPECT_LE(4 * settings.heartbeat, settings.host_silence_limit);
    EXPECT_EQ(set_variable("STARLING_HEARTBEAT_MS", "1000", VariableSource::built_in), 0);
}

TEST(Tree, ABrokenConnectionRaisesADoubtLongBeforeTheHostIsLost) {
    for (const uint32_t fanout : {2u, 8u}) {
        Forest forest(fanout);
        forest.plant();
        // Kill hosts 3 and 7 at once: with a fanout of 2, host 7 is below host 3.
        const std::set<TreeHostId> dying{3, 7};
        forest.step(
            "start", [&] { forest.root->grow(forest.names(14)); }, [&] { return forest.ready.size() == 14; });
        forest.step(
            "doubt",
            [&] {
                for (const TreeHostId host : dying) forest.kill(host);
            },
            [&] { return forest.suspected.contains(3) && forest.suspected.contains(7); });
        forest.step(
            "loss", [&] { EXPECT_TRUE(forest.lost.empty()); }, [&] { return forest.suspected.empty(); });
        forest.run();
        expect_truth(forest);
        EXPECT_EQ(forest.lost.size(), 2u);
    }
}

TEST(Tree, MissingHeartbeatsLoseTheHost) {
    Forest forest(2);
    forest.settings.silence_limit = std::chrono::milliseconds(4000);
    forest.plant();
    Traffic traffic(forest);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(14)); }, [&] { return forest.ready.size() == 14; });
    forest.step(
        "silence",
        [&] {
            // Make host 1 silent: it stays alive and connected, but neither receives nor sends.
            auto& inside = *forest.nodes.at(1).inside;
            forest.loop.cancel(inside.heartbeat_timer);
            inside.heartbeat_timer = 0;
            for (const auto& [serial, neighbour] : inside.by_serial)
                neighbour->connection->set_handlers({{}, [](TreeFrameKind, std::string&) {}, {}, {}});
            inside.by_serial.clear();
            forest.killed.insert(1);
        },
        [&] { return forest.suspected.contains(1); });
    forest.step(
        "loss", [&] { EXPECT_TRUE(forest.lost.empty()); }, [&] { return forest.lost.size() == 1; });
    forest.step(
        "others",
        [&] {
            forest.kill(1);
            traffic.broadcast();
        },
        [&] { return traffic.complete(); });
    forest.run();
    EXPECT_TRUE(forest.lost.contains(1));
    expect_truth(forest);
}

TEST(Tree, ShutDownEndsDaemonsWhoseParentIsDying) {
    for (uint32_t seed = 1; seed <= 4; ++seed) {
        Forest forest(2, seed);
        forest.plant();
        bool ended = false;
        forest.step(
            "start", [&] { forest.root->grow(forest.names(30)); }, [&] { return forest.ready.size() == 30; });
        forest.step(
            "end",
            [&] {
                forest.root->shut_down(std::chrono::seconds(20), [&](const auto& left) {
                    EXPECT_TRUE(left.empty());
                    ended = true;
                });
                for (int i = 0; i < 5; ++i) forest.kill(forest.any_living());
            },
            [&] { return ended && forest.nodes.empty(); });
        forest.run();
    }
}

TEST(Tree, ShutDownWhileGrowing) {
    Forest forest(2);
    forest.most_delay_ms = 30;
    forest.plant();
    bool ended = false;
    forest.step(
        "start", [&] { forest.root->grow(forest.names(40)); }, [&] { return forest.ready.size() >= 5; });
    forest.step(
        "end",
        [&] {
            forest.root->shut_down(std::chrono::seconds(20), [&](const auto& left) {
                EXPECT_TRUE(left.empty());
                ended = true;
            });
        },
        [&] { return ended && forest.nodes.empty(); });
    forest.run();
}

}  // namespace
}  // namespace starling::launch
