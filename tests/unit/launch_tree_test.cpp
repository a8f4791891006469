// Trees of daemons without faults: start, messages of every form, end.
#include "launch/tree/tree.h"
#include "tree_forest.h"

namespace starling::launch {
namespace {

class Fanout : public ::testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Tree, Fanout, ::testing::Values(1u, 2u, 3u, 16u, 100u));

TEST_P(Fanout, EveryHostStartsAndEnds) {
    const size_t n = GetParam() == 1 ? 12 : 64;
    Forest forest(GetParam());
    forest.plant();
    std::vector<TreeHostId> left{99};
    forest.step(
        "start", [&] { EXPECT_EQ(forest.root->grow(forest.names(n)), 1u); }, [&] { return forest.ready.size() == n; });
    forest.step(
        "end",
        [&] {
            for (const auto& [host, node] : forest.nodes) EXPECT_LE(node.inside->branches.size(), GetParam()) << host;
            EXPECT_LE(forest.root_inside->branches.size(), GetParam());
            forest.root->shut_down(std::chrono::seconds(30), [&](const std::vector<TreeHostId>& hosts) { left = hosts; });
        },
        [&] { return left != std::vector<TreeHostId>{99} && forest.nodes.empty(); });
    forest.run();
    EXPECT_TRUE(left.empty());
    EXPECT_EQ(forest.told_to_end.size(), n);
    EXPECT_TRUE(forest.failed.empty());
    EXPECT_TRUE(forest.lost.empty());
    EXPECT_TRUE(forest.orphaned.empty());
}

TEST_P(Fanout, MessagesAreRoutedBetweenAllHosts) {
    const TreeHostId n = 20;
    Forest forest(GetParam());
    forest.plant();
    std::map<std::pair<TreeHostId, TreeHostId>, int> got;  // number of received messages by (from, to)
    std::map<TreeHostId, std::vector<std::string>> from_root;
    int expected = 0;
    forest.on_message = [&](TreeHostId at, const TreeMessage& message) {
        if (message.payload.starts_with("pair")) {
            EXPECT_EQ(message.payload, "pair " + std::to_string(message.from) + " " + std::to_string(at) + " " +
                                           std::to_string(got[{message.from, at}]));
            ++got[{message.from, at}];
            --expected;
        } else {
            from_root[at].push_back(std::string(message.payload) + "/" + std::string(message.own));
        }
    };
    forest.step(
        "start", [&] { forest.root->grow(forest.names(n)); }, [&] { return forest.ready.size() == n; });
    forest.step(
        "pairs",
        [&] {
            for (int round = 0; round < 3; ++round) {
                for (TreeHostId from = 0; from <= n; ++from) {
                    for (TreeHostId to = 0; to <= n; ++to) {
                        if (from == to) continue;
                        ++expected;
                        forest.at(from).send(
                            to, "pair " + std::to_string(from) + " " + std::to_string(to) + " " + std::to_string(round));
                    }
                }
            }
        },
        [&] { return expected == 0; });
    forest.step(
        "forms",
        [&] {
            forest.root->broadcast("all");
            forest.root->multicast({3, 7, 4, 3}, "some");
            std::vector<std::pair<TreeHostId, std::string>> parts;
            for (TreeHostId host = 1; host <= n; ++host) parts.emplace_back(host, "part " + std::to_string(host));
            forest.root->scatter("shared", parts);
            forest.root->send(0, "to itself");
            forest.root->send(12345, "to no host");
            forest.root->broadcast("last");
        },
        [&] {
            for (TreeHostId host = 1; host <= n; ++host) {
                if (from_root[host].empty() || from_root[host].back() != "last/") return false;
            }
            return true;
        });
    forest.run();
    for (TreeHostId host = 1; host <= n; ++host) {
        std::vector<std::string> wanted{"all/"};
        if (host == 3 || host == 4 || host == 7) wanted.push_back("some/");
        wanted.push_back("shared/part " + std::to_string(host));
        wanted.push_back("last/");
        EXPECT_EQ(from_root[host], wanted) << host;
    }
    EXPECT_TRUE(from_root[0].empty());
}

TEST(Tree, MessagesToStartingHostsWaitForThem) {
    Forest forest(2);
    forest.most_delay_ms = 40;
    forest.plant();
    std::map<TreeHostId, std::string> got;
    forest.on_message = [&](TreeHostId at, const TreeMessage& message) { got[at] += message.payload; };
    forest.step(
        "start",
        [&] {
            forest.root->grow(forest.names(14));
            forest.root->broadcast("a");
            forest.root->send(14, "b");
        },
        [&] { return got.size() == 14 && got[14] == "ab"; });
    forest.run();
}

TEST(Tree, ReportsWhenAllHaveReceivedAMessage) {
    Forest forest(2);
    forest.plant();
    size_t got = 0;
    bool nobody = false, everybody = false;
    forest.on_message = [&](TreeHostId, const TreeMessage&) { ++got; };
    forest.step(
        "nobody", [&] { forest.root->broadcast("a", Urgency::control, [&] { nobody = true; }); }, [&] { return nobody; });
    forest.step(
        "everybody",
        [&] {
            forest.root->grow(forest.names(14));
            forest.root->broadcast("b", Urgency::control, [&] {
                EXPECT_EQ(got, 14u);
                everybody = true;
            });
        },
        [&] { return everybody; });
    forest.run();
}

TEST(Tree, GrowsRepeatedly) {
    Forest forest(3);
    forest.plant();
    for (int round = 0; round < 6; ++round) {
        forest.step(
            "grow", [&, round] { EXPECT_EQ(forest.root->grow(forest.names(7)), TreeHostId(1 + 7 * round)); },
            [&, round] { return forest.ready.size() == size_t(7 * (round + 1)); });
    }
    forest.run();
    for (const auto& [host, node] : forest.nodes) EXPECT_LE(node.inside->branches.size(), 3u);
}

TEST(Tree, AHostThatFailsToStartDoesNotAffectOthers) {
    Forest forest(2);
    forest.trouble = [](const std::string& name) { return name.starts_with("host3") ? "is on fire" : std::string(); };
    forest.plant();
    forest.step(
        "start", [&] { forest.root->grow(forest.names(40)); },
        [&] { return forest.ready.size() + forest.failed.size() == 40; });
    forest.run();
    EXPECT_EQ(forest.failed.size(), 11u);  // host 3, and hosts 30 to 39 failed
    for (const auto& [host, why] : forest.failed) EXPECT_EQ(why, "host " + forest.root->name_of(host) + ": is on fire");
}

TEST(Tree, NamesThatAreOptionsOrCommandsAreRefused) {
    Forest forest(4);
    forest.plant();
    forest.step(
        "start",
        [&] {
            forest.root->grow({"-oProxyCommand=x", "", "a b", "a;b", "$(x)", "good"});
        },
        [&] { return forest.ready.size() + forest.failed.size() == 6; });
    forest.run();
    EXPECT_EQ(forest.failed.size(), 5u);
    EXPECT_EQ(forest.ready, std::set<TreeHostId>{6});
}

class Sealed : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Tree, Sealed, ::testing::Values(false, true),
                         [](const auto& encrypted) { return encrypted.param ? "AndEncrypted" : "Only"; });

TEST_P(Sealed, LargeMessagesAndManyBulkMessagesArriveWhole) {
    Forest forest(2);
    forest.settings.encrypt = GetParam();
    forest.plant();
    const std::string large(20 << 20, 'x');
    size_t bulk = 0, large_ones = 0;
    bool urgent_before_bulk = false;
    forest.on_message = [&](TreeHostId at, const TreeMessage& message) {
        if (message.payload == "urgent") urgent_before_bulk = bulk < 400;
        if (message.payload.size() == large.size()) large_ones += message.payload == large;
        if (at == 0 && message.payload.size() == 60000) ++bulk;
    };
    forest.step(
        "start", [&] { forest.root->grow(forest.names(7)); }, [&] { return forest.ready.size() == 7; });
    forest.step(
        "send",
        [&] {
            forest.root->broadcast(large);
            for (int i = 0; i < 400; ++i) forest.at(7).send(0, std::string(60000, 'b'), Urgency::bulk);
            EXPECT_EQ(forest.at(7).bulk_backlog(), 400u * 60000u);
            forest.at(7).send(0, "urgent");
        },
        [&] { return large_ones == 7 && bulk == 400; });
    forest.run();
    EXPECT_TRUE(urgent_before_bulk);
}

TEST_P(Sealed, AMismatchedEncryptionSettingIsReportedWithItsRemedy) {
    Forest forest(2);
    forest.settings.encrypt = GetParam();
    forest.settings.start_limit = std::chrono::milliseconds(4000);
    forest.misread = [](TreeSettings& settings) { settings.encrypt = !settings.encrypt; };
    forest.plant();
    forest.step(
        "start", [&] { forest.root->grow(forest.names(1)); }, [&] { return !forest.failed.empty(); });
    forest.run();
    ASSERT_EQ(forest.failed.size(), 1u);
    const std::string& why = forest.failed.begin()->second;
    EXPECT_NE(why.find(GetParam() ? "it encrypts" : "it does not encrypt"), std::string::npos) << why;
    EXPECT_NE(why.find("set STARLING_ENCRYPTION to the same"), std::string::npos) << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
}

TEST(Tree, HeldBulkMessagesWaitAtTheirSource) {
    Forest forest(2);
    forest.plant();
    size_t bulk = 0, control = 0;
    forest.on_message = [&](TreeHostId, const TreeMessage& message) { ++(message.payload == "c" ? control : bulk); };
    forest.step(
        "start", [&] { forest.root->grow(forest.names(7)); }, [&] { return forest.ready.size() == 7; });
    forest.step(
        "hold",
        [&] {
            forest.root->hold_bulk(true);
            for (int i = 0; i < 200; ++i) forest.at(7).send(0, std::string(60000, 'b'), Urgency::bulk);
            forest.at(7).send(0, "c");
        },
        [&] { return control == 1 && !forest.root_inside->held.empty(); });
    forest.step(
        "release",
        [&] {
            EXPECT_EQ(bulk, 0u);
            EXPECT_LE(forest.root_inside->held.size() * 60000, TreeOutbox::kBulkWindow + 60000);
            EXPECT_GT(forest.at(7).bulk_backlog(), 0u);
            forest.root->hold_bulk(false);
        },
        [&] { return bulk == 200 && forest.at(7).bulk_backlog() == 0; });
    forest.run();
}

}  // namespace
}  // namespace starling::launch
