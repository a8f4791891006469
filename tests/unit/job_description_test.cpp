// A job's description: encoding, checks, and the segments of its hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <set>

#include "job/job_segment.h"
#include "mpi.h"

namespace {

using namespace starling::job;

/// Returns a job whose ranks are on these hosts, in this order.
JobDescription describe(const std::vector<uint32_t>& host_of_rank, uint32_t hosts) {
    JobDescription job;
    job.draw();
    if (hosts == 3) job.draw_network_secret();
    job.size = job.universe_size = static_cast<uint32_t>(host_of_rank.size());
    job.several_hosts = hosts > 1;
    job.recovers = hosts == 2;
    job.command = "program";
    job.blob = std::string("par\0ents", 8);
    job.hosts.resize(hosts);
    for (uint32_t h = 0; h < hosts; ++h) {
        job.hosts[h].id = h + 1;
        job.hosts[h].key = 100 + h;
        std::snprintf(job.hosts[h].name, sizeof job.hosts[h].name, "host%u", h);
        job.hosts[h].addresses = 2;
        job.hosts[h].ipv4[0] = 0x0100000au + h;
    }
    std::vector<uint32_t> next(hosts);
    job.placements = fold_placements(host_of_rank, 0, next);
    return job;
}

std::vector<uint32_t> random_hosts(std::mt19937& random, uint32_t size, uint32_t hosts) {
    std::vector<uint32_t> list(size);
    for (uint32_t& host : list) host = static_cast<uint32_t>(random()) % hosts;
    return list;
}

TEST(JobDescription, EncodesRegularPlacementsBriefly) {
    std::vector<uint32_t> by_slot, by_node;
    for (uint32_t rank = 0; rank < 12; ++rank) {
        by_slot.push_back(rank / 4);
        by_node.push_back(rank % 3);
    }
    std::vector<uint32_t> next(3);
    EXPECT_EQ(fold_placements(by_slot, 0, next), (std::vector<Placement>{{0, 1, 4, 0, 0}, {4, 1, 4, 1, 0}, {8, 1, 4, 2, 0}}));
    next.assign(3, 0);
    EXPECT_EQ(fold_placements(by_node, 0, next), (std::vector<Placement>{{0, 3, 4, 0, 0}, {1, 3, 4, 1, 0}, {2, 3, 4, 2, 0}}));
}

TEST(JobDescription, SurvivesEncoding) {
    std::mt19937 random(1);
    for (int round = 0; round < 200; ++round) {
        const uint32_t hosts = 1 + static_cast<uint32_t>(random()) % 5, size = 1 + static_cast<uint32_t>(random()) % 40;
        const JobDescription job = describe(random_hosts(random, size, hosts), hosts);
        ASSERT_EQ(job.problem(), "");
        JobDescription back;
        const std::string bytes = encode(job);
        ASSERT_TRUE(decode(bytes, back));
        EXPECT_EQ(encode(back), bytes);
        EXPECT_EQ(back.placements, job.placements);
        EXPECT_EQ(back.blob, job.blob);
        EXPECT_EQ(back.network_secret, job.network_secret);
        EXPECT_EQ(static_cast<bool>(back.network_secret), hosts == 3);
        for (size_t cut = 0; cut < bytes.size(); ++cut) EXPECT_FALSE(decode({bytes.data(), cut}, back));
        EXPECT_FALSE(decode(bytes + "x", back));
    }
}

TEST(JobDescription, ReportsErrors) {
    const JobDescription good = describe({0, 0, 1, 1}, 2);
    JobDescription bad = good;
    bad.placements[1].first = 1;
    EXPECT_EQ(bad.problem(), "rank 1 is placed twice");
    bad = good;
    bad.placements[1].host = 2;
    EXPECT_EQ(bad.problem(), "a process is placed on a host that is not listed");
    bad = good;
    bad.placements.pop_back();
    EXPECT_EQ(bad.problem(), "2 processes have no host");
    bad = good;
    bad.placements[1].local = 1;
    EXPECT_EQ(bad.problem(), "the local ranks on a host have gaps");
    bad = good;
    bad.placements[0].stride = 0;
    EXPECT_NE(bad.problem(), "");
    bad = good;
    bad.placements[0].count = ~0u;
    bad.placements[0].stride = ~0u;
    EXPECT_NE(bad.problem(), "");
}

TEST(Segment, EachHostHasItsPart) {
    std::mt19937 random(2);
    for (int round = 0; round < 20; ++round) {
        const uint32_t hosts = 1 + static_cast<uint32_t>(random()) % 4, size = hosts + static_cast<uint32_t>(random()) % 20;
        const std::vector<uint32_t> host_of = random_hosts(random, size, hosts);
        const JobDescription job = describe(host_of, hosts);
        std::set<uint64_t> contexts;
        for (uint32_t h = 0; h < hosts; ++h) {
            JobSegment segment;
            ASSERT_EQ(JobSegment::create(job, h, segment), MPI_SUCCESS);
            EXPECT_EQ(segment.header().size, size);
            EXPECT_EQ(segment.header().local_ranks, std::count(host_of.begin(), host_of.end(), h));
            JobDescription same = segment.description();
            same.key = job.key;
            EXPECT_EQ(encode(same), encode(job));
            EXPECT_EQ(segment.header().key, 100 + h);
            uint32_t next = 0;
            for (uint32_t rank = 0; rank < size; ++rank) {
                EXPECT_EQ(segment.host_of(rank), host_of[rank]);
                EXPECT_EQ(segment.is_local(rank), host_of[rank] == h);
                EXPECT_EQ(segment.port(rank).load(), 0u);
                if (host_of[rank] != h) continue;
                EXPECT_EQ(segment.local_index(rank), next);
                EXPECT_EQ(segment.local_rank(next), rank);
                segment.cell(rank).appnum = static_cast<int32_t>(rank);
                *segment.region(rank) = std::byte{1};
                ++next;
            }
            for (int draw = 0; draw < 10; ++draw) EXPECT_TRUE(contexts.insert(segment.draw_context()).second);
            JobSegment opened;
            ASSERT_EQ(JobSegment::open(segment.address(), opened), MPI_SUCCESS);
            EXPECT_EQ(opened.host_of(size - 1), host_of[size - 1]);
        }
    }
}

TEST(Segment, AStubHasNoRanks) {
    const JobDescription job = describe({0, 0, 1}, 2);
    JobSegment stub, opened;
    ASSERT_EQ(JobSegment::create(job, kNoHost, stub), MPI_SUCCESS);
    ASSERT_EQ(JobSegment::open(stub.address(), opened), MPI_SUCCESS);
    for (uint32_t rank = 0; rank < 3; ++rank) EXPECT_FALSE(opened.is_local(rank));
    EXPECT_EQ(opened.host_of(2), 1u);
    EXPECT_STREQ(opened.host(1).name, "host1");
    EXPECT_DEATH(opened.cell(0), "does not run on this host");
}

TEST(PortWord, KeepsPortAndState) {
    const PortWord word{54321, PortWord::finalized};
    EXPECT_EQ(PortWord::of(word.word()).port, 54321);
    EXPECT_EQ(PortWord::of(word.word()).state, PortWord::finalized);
    EXPECT_FALSE(PortWord::of(word.word()).is_final);
    EXPECT_TRUE(PortWord::of(PortWord{1, PortWord::finalized, true}.word()).is_final);
    EXPECT_EQ(PortWord::of(0).state, PortWord::unknown);
}

TEST(PortWord, LearnsNewsInAnyOrder) {
    std::vector<PortWord> news = {{0, PortWord::finalized, true}, {54321, PortWord::running}, {0, PortWord::failed}};
    const auto precedes = [](const PortWord& a, const PortWord& b) { return a.state < b.state; };
    std::sort(news.begin(), news.end(), precedes);
    do {
        std::atomic<uint32_t> entry = 0;
        for (const PortWord& one : news) learn(entry, one);
        EXPECT_EQ(entry.load(), (PortWord{54321, PortWord::failed, true}.word()));
    } while (std::next_permutation(news.begin(), news.end(), precedes));
}

TEST(PortWord, ARankMayRunAgainUnlessItsEndIsFinal) {
    std::atomic<uint32_t> entry = PortWord{54321, PortWord::finalized}.word();
    learn(entry, {54321, PortWord::running});
    EXPECT_EQ(entry.load(), (PortWord{54321, PortWord::running}.word()));
    learn(entry, {0, PortWord::finalized, true});
    learn(entry, {54321, PortWord::running});
    EXPECT_EQ(entry.load(), (PortWord{54321, PortWord::finalized, true}.word()));
}

}  // namespace
