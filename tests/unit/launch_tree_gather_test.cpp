// Gathering of many hosts' contributions at the root: combined on the way, and delivered even if daemons on the way die.
#include "launch/tree/gathering.h"
#include "tree_forest.h"

namespace starling::launch {
namespace {

HostSet all_of(TreeHostId n) {
    std::vector<TreeHostId> list;
    for (TreeHostId host = 0; host <= n; ++host) list.push_back(host);
    return HostSet::of(std::move(list));
}

// The contributions of each topic that reached the root.
struct Got {
    explicit Got(Forest& forest) {
        forest.on_gathered = [this](std::string_view topic, const std::vector<GatheredPiece>& pieces) {
            ++messages[std::string(topic)];
            for (const GatheredPiece& piece : pieces) {
                for (const TreeHostId host : piece.hosts.list()) by_host[std::string(topic)][host].emplace_back(piece.bytes);
            }
        };
    }
    size_t hosts(const std::string& topic) { return by_host[topic].size(); }

    std::map<std::string, size_t> messages;
    std::map<std::string, std::map<TreeHostId, std::vector<std::string>>> by_host;
};

class Fanout : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Tree, Fanout, ::testing::Values(1u, 2u, 3u, 16u, 100u));

TEST_P(Fanout, EachBranchSendsOneMessage) {
    const TreeHostId n = GetParam() == 1 ? 12 : 70;
    Forest forest(GetParam());
    forest.plant();
    Got got(forest);
    const HostSet all = all_of(n);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(n)); }, [&] { return forest.ready.size() == n; });
    forest.step(
        "gather",
        [&] {
            for (TreeHostId host = 0; host <= n; ++host) {
                forest.at(host).gather("same", "yes", all);
                forest.at(host).gather("own", "piece " + std::to_string(host), all, Urgency::bulk);
            }
        },
        [&] { return got.hosts("same") == n + 1 && got.hosts("own") == n + 1; });
    forest.run();
    for (TreeHostId host = 0; host <= n; ++host) {
        EXPECT_EQ(got.by_host["same"][host], std::vector<std::string>{"yes"}) << host;
        EXPECT_EQ(got.by_host["own"][host], std::vector<std::string>{"piece " + std::to_string(host)}) << host;
    }
    // The root received one message per branch, and its own contribution.
    EXPECT_EQ(got.messages["same"], forest.root_inside->branches.size() + 1);
    EXPECT_EQ(got.messages["own"], forest.root_inside->branches.size() + 1);
    for (const auto& [host, node] : forest.nodes) {
        EXPECT_TRUE(node.inside->gatherings[0].empty());
        EXPECT_TRUE(node.inside->gatherings[1].empty());
    }
}

TEST(Gather, OnlySomeHostsContribute) {
    Forest forest(2);
    forest.plant();
    Got got(forest);
    const HostSet some = HostSet::of({3, 7, 8, 21, 29});
    forest.step(
        "start", [&] { forest.root->grow(forest.names(30)); }, [&] { return forest.ready.size() == 30; });
    forest.step(
        "gather",
        [&] {
            for (const TreeHostId host : some.list()) forest.at(host).gather("t", "x", some);
        },
        [&] { return got.hosts("t") == some.size(); });
    forest.run();
    EXPECT_LE(got.messages["t"], 2u);
}

TEST(Gather, AMissingContributionOnlyDelaysTheOthers) {
    Forest forest(2);
    forest.plant();
    Got got(forest);
    const HostSet all = all_of(14);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(14)); }, [&] { return forest.ready.size() == 14; });
    forest.step(
        "all but a leaf",
        [&] {
            for (TreeHostId host = 1; host < 14; ++host) forest.at(host).gather("t", "x", all);
        },
        [&] { return got.hosts("t") == 13; });
    // The daemons above host 14 have forwarded all other contributions; that of host 14 completes the gather.
    forest.step(
        "the leaf", [&] { forest.at(14).gather("t", "x", all); }, [&] { return got.hosts("t") == 14; });
    forest.run();
    for (const auto& [host, node] : forest.nodes) EXPECT_TRUE(node.inside->gatherings[0].empty()) << host;
}

TEST(Gather, AnEagerGatherSendsTheFirstContributionAtOnce) {
    Forest forest(2);
    forest.plant();
    Got got(forest);
    const HostSet all = all_of(30);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(30)); }, [&] { return forest.ready.size() == 30; });
    forest.step(
        "one", [&] { forest.at(30).gather("t", "x", all, Urgency::control, true); }, [&] { return got.hosts("t") == 1; });
    forest.step(
        "all",
        [&] {
            for (TreeHostId host = 1; host < 30; ++host) forest.at(host).gather("t", "x", all, Urgency::control, true);
        },
        [&] { return got.hosts("t") == 30; });
    forest.run();
    // Each branch sends its first contribution at once, and combines those that arrive while that message is in transit.
    EXPECT_LE(got.messages["t"], 8u);
}

TEST(Gather, ContributionsDoNotOvertakeEarlierMessages) {
    Forest forest(2);
    forest.plant();
    Got got(forest);
    std::map<TreeHostId, int> messages;
    forest.on_message = [&](TreeHostId at, const TreeMessage& message) {
        if (at == kRootHost) ++messages[message.from];
        for (const auto& [host, pieces] : got.by_host["end"]) EXPECT_NE(host, message.from) << "overtaken";
    };
    const HostSet all = all_of(14);
    forest.step(
        "start", [&] { forest.root->grow(forest.names(14)); }, [&] { return forest.ready.size() == 14; });
    forest.step(
        "send",
        [&] {
            forest.root->hold_bulk(true);
            for (TreeHostId host = 1; host <= 14; ++host) {
                for (int i = 0; i < 20; ++i) forest.at(host).send(kRootHost, std::string(20000, '.'), Urgency::bulk);
                forest.at(host).gather("end", "", all, Urgency::bulk);
            }
        },
        [&] { return true; });
    int turns = 0;
    forest.step("wait", {}, [&] { return ++turns == 50; });
    forest.step(
        "release",
        [&] {
            EXPECT_TRUE(messages.empty());
            forest.root->hold_bulk(false);
        },
        [&] { return got.hosts("end") == 14; });
    forest.run();
    for (TreeHostId host = 1; host <= 14; ++host) EXPECT_EQ(messages[host], 20) << host;
}

TEST(Gather, ContributionsAreSentBeforeADaemonLeaves) {
    Forest forest(2);
    forest.plant();
    Got got(forest);
    const HostSet all = all_of(30);
    std::vector<TreeHostId> left{99};
    forest.step(
        "start", [&] { forest.root->grow(forest.names(30)); }, [&] { return forest.ready.size() == 30; });
    forest.step(
        "gather and end",
        [&] {
            for (TreeHostId host = 3; host <= 30; ++host) forest.at(host).gather("t", "x", all);
            forest.root->shut_down(std::chrono::seconds(30), [&](const auto& hosts) { left = hosts; });
        },
        [&] { return forest.nodes.empty() && left.empty(); });
    forest.run();
    EXPECT_EQ(got.hosts("t"), 28u);
}

class Seeds : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Tree, Seeds, ::testing::Range(1u, 9u));

// Every living host's contribution arrives, although daemons that were forwarding it died.
TEST_P(Seeds, DaemonsDieOnTheWay) {
    constexpr uint32_t kFanouts[] = {2, 3, 5, 16};
    const TreeHostId n = 64;
    Forest forest(kFanouts[GetParam() % 4], GetParam());
    forest.plant();
    Got got(forest);
    const HostSet all = all_of(n);
    std::map<std::string, std::set<TreeHostId>> told;
    forest.step(
        "start", [&] { forest.root->grow(forest.names(n)); }, [&] { return forest.ready.size() == n; });
    int turns = 0;
    forest.step("deaths", {}, [&] {
        const std::string topic = "topic " + std::to_string(turns / 20);
        for (const TreeHostId host : forest.living()) {
            if (forest.random() % 4 != 0 || !told[topic].insert(host).second) continue;
            forest.at(host).gather(topic, topic + " of " + std::to_string(host % 3), all,
                                   turns / 20 % 2 ? Urgency::bulk : Urgency::control);
        }
        if (forest.random() % 8 == 0 && forest.nodes.size() > 20) forest.kill(forest.any_living());
        return ++turns == 120;
    });
    const auto heard_all = [&] {
        for (const auto& [topic, hosts] : told) {
            for (const TreeHostId host : hosts) {
                if (forest.lives(host) && !got.by_host[topic].contains(host)) return false;
            }
        }
        return true;
    };
    forest.step("settle", {}, heard_all);
    forest.run();
    EXPECT_GT(forest.killed.size(), 5u);
    for (const auto& [topic, hosts] : got.by_host) {
        for (const auto& [host, pieces] : hosts) {
            EXPECT_TRUE(told[topic].contains(host)) << topic << " of " << host;
            for (const std::string& piece : pieces) EXPECT_EQ(piece, topic + " of " + std::to_string(host % 3));
        }
    }
}

TEST(GatheredPayload, SurvivesEncodingAndDecoding) {
    const HostSet some = HostSet::of({1, 2, 3, 9});
    const GatheredPayload message{"topic", some, true, {{HostSet::one(2), "a"}, {HostSet::of({3, 9}), ""}}};
    const std::string bytes = encode(message);
    GatheredPayload again;
    ASSERT_TRUE(decode(bytes, again));
    EXPECT_EQ(encode(again), bytes);
    EXPECT_EQ(again.topic, "topic");
    EXPECT_EQ(again.contributors, some);
    ASSERT_EQ(again.parts.size(), 2u);
    EXPECT_EQ(again.parts[1].hosts.list(), (std::vector<TreeHostId>{3, 9}));
    for (size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(decode(bytes.substr(0, length), again));
    EXPECT_FALSE(decode(bytes + "x", again));
    EXPECT_FALSE(decode(encode(GatheredPayload{"topic", some, false, {}}), again)) << "without contributors";
}

TEST(TopicGathering, FoldsEqualPieces) {
    TopicGathering gathering;
    const HostSet all = HostSet::of({1, 2, 3, 4, 5});
    int receipts = 0;
    const auto receipt = [&] { return DeliveryReceipt(nullptr, [&](void*) { ++receipts; }); };
    for (const TreeHostId host : {1u, 2u, 4u}) gathering.add({"t", all, false, {{HostSet::one(host), "yes"}}}, receipt());
    gathering.add({"t", all, false, {{HostSet::one(3), "no"}}}, receipt());
    gathering.add({"t", all, false, {{HostSet::one(2), "yes"}}}, receipt());  // host 2's contribution again
    EXPECT_TRUE(gathering.complete_for(HostSet::of({1, 2, 3, 4, 7})));
    EXPECT_FALSE(gathering.complete_for(all));
    DeliveryReceipt together;
    const std::string bytes = gathering.receive("t", together);
    EXPECT_TRUE(gathering.empty());
    EXPECT_EQ(receipts, 0) << "nothing has arrived yet";
    GatheredPayload message;
    ASSERT_TRUE(decode(bytes, message));
    ASSERT_EQ(message.parts.size(), 2u);
    EXPECT_EQ(message.parts[0].hosts, HostSet::of({1, 2, 4}));
    together.reset();
    EXPECT_EQ(receipts, 5);
    gathering.add({"t", all, false, {{HostSet::one(5), "yes"}}}, {});
    EXPECT_TRUE(gathering.complete_for(all));
}

}  // namespace
}  // namespace starling::launch
