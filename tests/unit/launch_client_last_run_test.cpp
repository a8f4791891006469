#include "launch/client/last_run.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace starling::launch {
namespace {

/// Returns the lines of a run of 8 ranks on two hosts, in which ranks i and i + 4 send each other messages of 1 KB.
std::string lines_of(const std::string& places, bool all_finalize = true) {
    std::string lines = R"({"kind":"profile","version":1})"
                        "\n"
                        R"({"kind":"job","job":0,"parent":null,"size":8,"hosts":["a","b"],"places":)" +
                        places + "}\n";
    for (int rank = 0; rank < 8; ++rank) {
        const std::string other = std::to_string((rank + 4) % 8), self = std::to_string(rank);
        lines += R"({"kind":"phase","job":0,"rank":)" + self + R"(,"phase":"","from":1,"to":1,"peers":[[0,)" + other +
                 R"(,500,512000,0,0,0,0,0,0],[1,3,9,9,9,9,9,9,9,9]]})" + "\n";
        if (all_finalize || rank > 0) lines += R"({"kind":"end","job":0,"rank":)" + self + R"(,"how":"finalized"})" + "\n";
    }
    return lines;
}

TEST(TrafficRecord, SumsUpBothDirectionsOfTheFirstJob) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,4],[1,4,4]]"));
    EXPECT_TRUE(record.is_complete());
    EXPECT_EQ(record.host_of_rank(), (std::vector<uint32_t>{0, 0, 0, 0, 1, 1, 1, 1}));
    const auto pairs = record.pairs();
    ASSERT_EQ(pairs.size(), 4u);
    EXPECT_EQ(pairs[1].a, 1u);
    EXPECT_EQ(pairs[1].b, 5u);
    EXPECT_EQ(pairs[1].messages, 1000u);
    EXPECT_EQ(pairs[1].bytes, 1024000u);
}

TEST(TrafficRecord, ARunThatEndedEarlyIsNotComplete) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,4],[1,4,4]]", false));
    EXPECT_FALSE(record.is_complete());
}

CachedRun first_run() {
    CachedRun last;
    last.plan.application = "app";
    last.key = "key";
    last.command = "app 1";
    return last;
}

TEST(NextRun, PartnersShareAHost) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,4],[1,4,4]]"));
    const CachedRun next = next_run(record, first_run(), false);
    ASSERT_EQ(next.host_of_rank.size(), 8u);
    for (size_t rank = 0; rank < 4; ++rank) EXPECT_EQ(next.host_of_rank[rank], next.host_of_rank[rank + 4]);
    EXPECT_EQ(std::count(next.host_of_rank.begin(), next.host_of_rank.end(), 0u), 4);
    EXPECT_TRUE(next.is_placed());
    ASSERT_EQ(next.plan.phases.size(), 1u);
    EXPECT_EQ(next.plan.phases[0].peers.at(2), (std::vector<control::PlannedPeer>{{6, 1000}}));
}

TEST(NextRun, AGoodPlacementStays) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,2],[1,2,2],[0,4,2],[1,6,2]]"));
    CachedRun last = first_run();
    last.host_of_rank = {0, 0, 1, 1, 0, 0, 1, 1};
    last.hosts = {"a", "b"};
    EXPECT_EQ(next_run(record, last, true).host_of_rank, last.host_of_rank);
}

// A job numbers its hosts by their first ranks, so a placed run may number them in another order.
TEST(NextRun, APlacedRunKeepsTheUsualNumbersOfHosts) {
    std::string lines = lines_of("[[0,0,2],[1,2,2],[0,4,2],[1,6,2]]");
    lines.replace(lines.find(R"(["a","b"])"), 9, R"(["b","a"])");
    TrafficRecord record;
    record.take(lines);
    CachedRun last = first_run();
    last.host_of_rank = {1, 1, 0, 0, 1, 1, 0, 0};
    last.hosts = {"a", "b"};
    const CachedRun next = next_run(record, last, true);
    EXPECT_EQ(next.host_of_rank, last.host_of_rank);
    EXPECT_EQ(next.hosts, last.hosts);
}

TEST(NextRun, ANewCommandRunsOnceInOrderForComparison) {
    CachedRun run = first_run();
    run.host_of_rank = {0, 1, 0, 1};
    EXPECT_TRUE(run.is_placed());
    run.placed_seconds = 2;
    EXPECT_FALSE(run.is_placed()) << "nothing to compare with";
    run.in_order_seconds = 3;
    EXPECT_TRUE(run.is_placed());
    run.in_order_seconds = 1;
    EXPECT_FALSE(run.is_placed());
}

TEST(NextRun, APlacementThatMadeTheRunSlowerIsDropped) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,2],[1,2,2],[0,4,2],[1,6,2]]"));
    CachedRun last = first_run();
    last.host_of_rank = {0, 0, 1, 1, 0, 0, 1, 1};
    last.hosts = {"a", "b"};
    last.in_order_seconds = 1e-12;
    EXPECT_FALSE(next_run(record, last, true).is_placed());
}

TEST(CachedRun, IsReadAsItWasWritten) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,4],[1,4,4]]"));
    const CachedRun next = next_run(record, first_run(), false);
    CachedRun again;
    ASSERT_EQ(parse_cached_run(to_text(next), again), "");
    EXPECT_EQ(again.host_of_rank, next.host_of_rank);
    EXPECT_EQ(again.hosts, next.hosts);
    EXPECT_EQ(again.plan.phases, next.plan.phases);
    EXPECT_EQ(again.key, "key");
    EXPECT_TRUE(again.plan.cached);
}

TEST(CachedRun, DamagedFilesAreRefusedWithASentence) {
    TrafficRecord record;
    record.take(lines_of("[[0,0,4],[1,4,4]]"));
    const std::string text = to_text(next_run(record, first_run(), false));
    CachedRun run;
    for (size_t length = 0; length + 1 < text.size(); length += 7) EXPECT_NE(parse_cached_run(text.substr(0, length), run), "");
    std::string other = text;
    other[other.find("\"host_of_rank\":[") + 16] = '9';
    EXPECT_NE(parse_cached_run(other, run), "");
}

TEST(RunKey, NumbersInArgumentsDoNotMatter) {
    const auto key = [](std::vector<std::string> argv, uint32_t count = 4) {
        Program program;
        program.argv = std::move(argv);
        program.count = count;
        return run_key({program});
    };
    EXPECT_EQ(key({"app", "-i", "10"}), key({"app", "-i", "2000"}));
    EXPECT_EQ(key({"app", "in1.dat"}), key({"app", "in27.dat"}));
    EXPECT_NE(key({"app", "-i", "10"}), key({"app", "-j", "10"}));
    EXPECT_NE(key({"app"}), key({"app"}, 8));
    EXPECT_NE(key({"app", "a", "b"}), key({"app", "ab"}));
    EXPECT_NE(key({"app", "a\xe9"}), key({"app", "a\xea"}));
}

TEST(RunKey, IsReadAsItWasWrittenIfArgumentsAreNotUtf8) {
    Program program;
    program.argv = {"app", "caf\xe9", "caf\xc3\xa9"};
    CachedRun run = first_run(), read;
    run.key = run_key({program});
    run.plan.size = 8;
    EXPECT_EQ(parse_cached_run(to_text(run), read), "");
    EXPECT_EQ(read.key, run.key);
}

class Cache : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/plan-cache-XXXXXX";
        ASSERT_NE(mkdtemp(name), nullptr);
        home_ = name;
        setenv("XDG_CACHE_HOME", name, 1);
    }
    void TearDown() override {
        unsetenv("XDG_CACHE_HOME");
        std::filesystem::remove_all(home_);
    }
    std::filesystem::path folder() const { return home_ / "starling" / "plans"; }
    std::filesystem::path home_;
};

TEST_F(Cache, FilesAndFolderAreTheUsersAlone) {
    PlanCache cache;
    EXPECT_NE(cache.open(false), "");
    ASSERT_EQ(cache.open(true), "");
    ASSERT_EQ(cache.write("a.json", "text"), "");
    EXPECT_EQ(cache.read("a.json"), "text");
    struct stat status;
    ASSERT_EQ(stat(folder().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    ASSERT_EQ(stat((folder() / "a.json").c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u);
    EXPECT_TRUE(cache.remove("a.json"));
    EXPECT_FALSE(cache.read("a.json").has_value());
}

TEST_F(Cache, FilesThatOthersMayWriteAreNotRead) {
    PlanCache cache;
    ASSERT_EQ(cache.open(true), "");
    ASSERT_EQ(cache.write("a.json", "text"), "");
    chmod((folder() / "a.json").c_str(), 0622);
    EXPECT_FALSE(cache.read("a.json").has_value());
}

TEST_F(Cache, LinksAreNotFollowed) {
    PlanCache cache;
    ASSERT_EQ(cache.open(true), "");
    std::ofstream(home_ / "secret") << "text";
    std::filesystem::create_symlink(home_ / "secret", folder() / "a.json");
    EXPECT_FALSE(cache.read("a.json").has_value());
    EXPECT_FALSE(cache.read("../secret").has_value());
    ASSERT_EQ(cache.write("a.json", "other"), "");  // replaces the link
    std::string secret;
    std::ifstream(home_ / "secret") >> secret;
    EXPECT_EQ(secret, "text");
}

TEST_F(Cache, FoldersOfOthersAreNotUsed) {
    {
        PlanCache cache;
        ASSERT_EQ(cache.open(true), "");
    }
    chmod(folder().c_str(), 0777);
    PlanCache open_to_all;
    EXPECT_NE(open_to_all.open(true).find("can't be used"), std::string::npos);
    std::filesystem::remove(folder());
    std::filesystem::create_directory(home_ / "elsewhere");
    std::filesystem::create_directory_symlink(home_ / "elsewhere", folder());
    PlanCache linked;
    EXPECT_NE(linked.open(true).find("can't be used"), std::string::npos);
}

TEST_F(Cache, TheOldestEntriesGo) {
    PlanCache cache;
    ASSERT_EQ(cache.open(true), "");
    for (size_t i = 0; i < PlanCache::kMostEntries + 5; ++i) {
        const std::string name = "app-" + std::to_string(i) + ".json";
        ASSERT_EQ(cache.write(name, "text"), "");
        const timespec times[2] = {{static_cast<time_t>(1000 + i), 0}, {static_cast<time_t>(1000 + i), 0}};
        ASSERT_EQ(utimensat(AT_FDCWD, (folder() / name).c_str(), times, 0), 0);
    }
    ASSERT_EQ(cache.write("last.json", "text"), "");
    const auto entries = cache.list();
    EXPECT_EQ(entries.size(), PlanCache::kMostEntries);
    EXPECT_EQ(entries.front().name, "last.json");
    EXPECT_FALSE(cache.read("app-0.json").has_value());
    EXPECT_NE(cache.write("huge.json", std::string(PlanCache::kMostEntryBytes + 1, ' ')), "");
}

TEST(EntryName, HasNothingThatAPathCouldUse) {
    EXPECT_EQ(entry_name("a/../b c", "key").find_first_of("/ "), std::string::npos);
    EXPECT_NE(entry_name("a", "key"), entry_name("a", "other"));
}

}  // namespace
}  // namespace starling::launch
