// Finding the ports of a job's ranks: lookups one by one for a few hosts, or a table of all ports for many. Tests of the daemon's half, of
// the root's half, and of both in jobs with few or all pairs communicating.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "launch/universe/port_collection.h"
#include "launch/universe/port_search.h"

namespace starling::launch {
namespace {

using Ranks = std::vector<uint32_t>;

TEST(PortSearch, FewHostsAreLookedUpOneByOne) {
    PortSearch search(64);
    for (uint32_t host = 1; host <= PortSearch::kFewHosts; ++host) {
        search.want(host, 10 * host);
        search.want(host, 10 * host + 1);  // a second rank on the same host needs no second lookup
    }
    auto step = search.next();
    EXPECT_EQ(step.lookups, (Ranks{10, 20, 30, 40})) << "a few at a time";
    EXPECT_FALSE(step.table);
    EXPECT_TRUE(search.next().lookups.empty());
    EXPECT_TRUE(search.held_back());
    search.answered(1, 10);
    EXPECT_EQ(search.settle(1, [](uint32_t) { return true; }), Ranks{11});
    EXPECT_EQ(search.next().lookups, Ranks{50});
    // If the answer lacks the other rank's port, that rank is looked up next.
    search.answered(2, 20);
    EXPECT_TRUE(search.settle(2, [](uint32_t) { return false; }).empty());
    EXPECT_EQ(search.next().lookups, Ranks{21});
    EXPECT_EQ(search.tables(), 0u);
    EXPECT_EQ(search.lookups(), 6u);
}

TEST(PortSearch, ManyHostsAreFoundByTheTable) {
    PortSearch search(64);
    search.want(0, 0);
    EXPECT_EQ(search.next().lookups, Ranks{0});
    for (uint32_t host = 1; host < 50; ++host) search.want(host, host);
    const auto step = search.next();
    EXPECT_TRUE(step.table);
    EXPECT_TRUE(step.lookups.empty());
    search.want(60, 60);
    EXPECT_FALSE(search.next().table) << "the table is already requested";
    search.answered(0, 0);
    EXPECT_TRUE(search.next().lookups.empty()) << "the table is already requested";
    // Two hosts' entries in the table are incomplete, so these hosts are looked up. If many were incomplete, the table would be requested
    // again.
    search.on_table();
    EXPECT_EQ(search.settle([](uint32_t rank) { return rank != 7 && rank != 60; }).size(), 48u);
    EXPECT_EQ(search.next().lookups, (Ranks{7, 60}));
    for (uint32_t host = 70; host < 90; ++host) search.want(host, host);
    EXPECT_TRUE(search.next().table);
}

TEST(PortSearch, ASlowAnswerDelaysOtherLookupsOnlyBriefly) {
    PortSearch search(10);
    for (uint32_t host = 0; host < 8; ++host) search.want(host, host);
    EXPECT_EQ(search.next().lookups.size(), 4u);
    ASSERT_TRUE(search.held_back());
    search.start_more();
    EXPECT_EQ(search.next().lookups.size(), 4u);
    EXPECT_FALSE(search.held_back());
}

TEST(PortSearch, LargeJobsLookUpOneHostAtATime) {
    PortSearch search(1000);
    for (uint32_t host = 0; host < 5; ++host) search.want(host, host);
    EXPECT_EQ(search.next().lookups.size(), 1u);
}

TEST(PortSearch, ForgottenLookupsAreNotAwaited) {
    PortSearch search(10);
    for (uint32_t host = 0; host < 6; ++host) search.want(host, host);
    EXPECT_EQ(search.next().lookups.size(), 4u);
    search.forget(0, 0);
    search.forget(5, 5);
    search.forget(9, 9);
    EXPECT_EQ(search.next().lookups, Ranks{4});
    search.answered(0, 0);  // late
    EXPECT_TRUE(search.next().lookups.empty());
    search.forget_all();
    EXPECT_FALSE(search.held_back());
    search.want(1, 1);
    EXPECT_EQ(search.next().lookups, Ranks{1});
}

HostSet hosts(std::vector<TreeHostId> list) { return HostSet::of(std::move(list)); }

TEST(PortCollection, IsRequestedOnceAndKept) {
    PortCollection collection;
    HostSet to;
    EXPECT_FALSE(collection.ready());
    EXPECT_EQ(collection.want(hosts({3}), hosts({1, 2, 3})), hosts({1, 2, 3}));
    EXPECT_TRUE(collection.want(hosts({2}), hosts({1, 2, 3})).empty()) << "the table is already requested";
    collection.add(1, {0, true, {10}});
    collection.add(2, {1, true, {20}});
    EXPECT_FALSE(collection.ready());
    collection.add(3, {2, true, {30}});
    ASSERT_TRUE(collection.ready());
    EXPECT_EQ(collection.extract(to).size(), 3u);
    EXPECT_EQ(to, hosts({2, 3}));
    EXPECT_FALSE(collection.ready());
    // The collection is complete, so a later request is answered at once.
    EXPECT_TRUE(collection.want(hosts({1}), hosts({1, 2, 3})).empty());
    ASSERT_TRUE(collection.ready());
    const PortTable table = collection.extract(to);
    EXPECT_EQ(to, hosts({1}));
    EXPECT_EQ(table[2].words, Ranks{30});
    EXPECT_EQ(collection.round(), 1u);
}

TEST(PortCollection, RequestsAgainOnlyFromLateHosts) {
    PortCollection collection;
    HostSet to;
    collection.want(hosts({1}), hosts({1, 2, 3, 4}));
    collection.add(1, {0, true, {10}});
    collection.add(2, {1, false, {20, 0}});
    collection.lost(4);
    EXPECT_FALSE(collection.ready());
    collection.close_round();  // host 3 has not answered in this round
    ASSERT_TRUE(collection.ready());
    EXPECT_EQ(collection.extract(to).size(), 2u);
    EXPECT_EQ(collection.want(hosts({1}), hosts({1, 2, 3})), hosts({2, 3}));
    EXPECT_EQ(collection.round(), 2u);
    collection.add(2, {1, true, {20, 21}});
    collection.add(2, {1, false, {20, 0}});  // a late answer to the first round
    collection.add(3, {2, true, {30}});
    ASSERT_TRUE(collection.ready());
    const PortTable table = collection.extract(to);
    ASSERT_EQ(table.size(), 3u);
    EXPECT_EQ(table[1].words, (Ranks{20, 21}));
}

// A whole job: `n` hosts of one rank each, whose messages take random time. Every host requests the ports of its `peers`.
struct JobOfOneEach {
    explicit JobOfOneEach(uint32_t n, uint32_t seed)
        : searches(n, PortSearch(n)), known(n, std::vector<bool>(n)), random(seed) {}

    void advance(uint32_t at) {
        const auto step = searches[at].next();
        for (const uint32_t rank : step.lookups) {
            ++lookups;
            later([this, at, rank] { answer(at, rank); });
        }
        if (step.table) later([this, at] { want(at); });
        if (searches[at].held_back())
            later([this, at] {
                searches[at].start_more();
                advance(at);
            });
    }
    void answer(uint32_t at, uint32_t rank) {
        known[at][rank] = true;
        searches[at].answered(rank, rank);
        searches[at].settle(rank, [&](uint32_t r) { return known[at][r]; });
        advance(at);
    }
    void want(uint32_t at) {
        std::vector<TreeHostId> all(searches.size());
        for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
        for (const TreeHostId host : collection.want(HostSet::one(at), HostSet::of(all)).list())
            later([this, host] {
                collection.add(host, {host, true, {host}});
                send_table();
            });
        send_table();
    }
    void send_table() {
        if (!collection.ready()) return;
        HostSet to;
        const PortTable table = collection.extract(to);
        for (const TreeHostId host : to.list()) {
            ++tables;
            later([this, host, table] {
                for (const HostPorts& ports : table) known[host][ports.host] = true;
                searches[host].on_table();
                searches[host].settle([&](uint32_t r) { return known[host][r]; });
                advance(host);
            });
        }
    }
    void later(std::function<void()> what) { events.emplace_back(std::move(what)); }
    void run(const std::function<Ranks(uint32_t)>& peers) {
        for (uint32_t at = 0; at < searches.size(); ++at) {
            for (const uint32_t peer : peers(at))
                later([this, at, peer] {
                    searches[at].want(peer, peer);
                    advance(at);
                });
        }
        while (!events.empty()) {
            std::swap(events.front(), events[random() % events.size()]);
            const auto what = std::move(events.front());
            events.pop_front();
            what();
        }
        for (uint32_t at = 0; at < searches.size(); ++at) {
            for (const uint32_t peer : peers(at)) EXPECT_TRUE(known[at][peer]) << at << " never found " << peer;
        }
    }

    std::vector<PortSearch> searches;
    PortCollection collection;
    std::vector<std::vector<bool>> known;
    std::deque<std::function<void()>> events;
    std::mt19937 random;
    size_t lookups = 0, tables = 0;
};

TEST(Ports, AllToAllCommunicationCostsFewLookups) {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
        const uint32_t n = 64;
        JobOfOneEach job(n, seed);
        job.run([&](uint32_t at) {
            Ranks all;
            for (uint32_t peer = 0; peer < n; ++peer) {
                if (peer != at) all.push_back(peer);
            }
            return all;
        });
        EXPECT_LE(job.lookups, n * PortSearch::kFewHosts);
        EXPECT_GE(job.tables, n);
        EXPECT_LE(job.tables, n) << "all hosts had answered: one table is enough";
    }
}

TEST(Ports, NeighborCommunicationNeedsNoTable) {
    for (uint32_t seed = 1; seed <= 20; ++seed) {
        const uint32_t n = 100;  // the ranks form a 10 by 10 grid
        JobOfOneEach job(n, seed);
        job.run([&](uint32_t at) { return Ranks{(at + 1) % n, (at + n - 1) % n, (at + 10) % n, (at + n - 10) % n}; });
        EXPECT_EQ(job.lookups, 4 * n);
        EXPECT_EQ(job.tables, 0u);
    }
}

}  // namespace
}  // namespace starling::launch
