// Hang reports from wait reports: cycles, near misses, members in different collectives, garbage.
#include "hang/judge.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/wait_report_page.h"

namespace starling::hang {
namespace {

using Kind = WaitReportPage::OperationKind;

constexpr uint64_t kJob = 0x1234;
constexpr uint64_t kContext = 0x10, kOther = 0x20;
constexpr uint64_t kNow = 1'000'000'000'000;

/// Builds a wait report as a process does.
struct Builder {
    WaitReportPage account{};
    explicit Builder(uint32_t size) {
        communicator(kContext, size, "MPI_COMM_WORLD");
        communicator(kOther, size, "other");
    }
    void communicator(uint64_t context, uint32_t size, const char* name) {
        WaitReportPage::CommunicatorEntry& c = account.communicator[account.communicators++];
        c.context = context;
        c.size = size;
        c.runs = 1;
        c.run[0] = {kJob, 0, size, 1, 0};
        std::strcpy(c.name, name);
    }
    void begin(WaitReportPage::OperationRange& range) { range.first = static_cast<uint16_t>(account.operations); }
    Builder& wait(const char* call, double seconds = 5) {
        WaitReportPage::WaitEntry& wait = account.wait[account.waits++];
        wait.since = kNow - static_cast<uint64_t>(seconds * 1e9);
        wait.communicator = WaitReportPage::kNoCommunicator;
        std::strcpy(wait.call, call);
        begin(wait.waited);
        return *this;
    }
    WaitReportPage::WaitEntry& last() { return account.wait[account.waits - 1]; }
    void add(WaitReportPage::OperationRange& range, Kind kind, int peer, int tag, uint64_t context) {
        ++range.count;
        ++range.total;
        WaitReportPage::OperationEntry& operation = account.operation[account.operations++];
        operation.kind = kind;
        operation.communicator = context == kContext ? 0 : context == kOther ? 1 : WaitReportPage::kNoCommunicator;
        operation.rank = peer;
        operation.tag = tag;
        operation.peer = static_cast<uint32_t>(peer);
        operation.peer_job = kJob;
        operation.bytes = 4;
        operation.context = context;
    }
    Builder& waits_for(Kind kind, int peer, int tag = 7) {
        add(last().waited, kind, peer, tag, kContext);
        return *this;
    }
    Builder& any() {
        last().any = 1;
        return *this;
    }
    Builder& collective(uint32_t number, bool everyone) {
        last().collective = 1;
        last().communicator = 0;
        last().number = number;
        last().everyone = everyone;
        return *this;
    }
    Builder& message(int peer, int tag, uint64_t context) {
        if (account.messages.count == 0) begin(account.messages);
        add(account.messages, Kind::message, peer, tag, context);
        return *this;
    }
};

RankReport computing(uint32_t rank) {
    RankReport r;
    r.process = {kJob, rank};
    r.host = "here";
    r.doing = Doing::computing;
    return r;
}

RankReport waiting(uint32_t rank, const Builder& builder) {
    RankReport r = computing(rank);
    r.doing = Doing::waiting;
    r.report = check(builder.account, kNow);
    EXPECT_TRUE(r.report);
    return r;
}

std::vector<RankReport> ring(uint32_t n) {
    std::vector<RankReport> ranks;
    for (uint32_t i = 0; i < n; ++i)
        ranks.push_back(waiting(i, Builder(n).wait("MPI_Recv").waits_for(Kind::receive, static_cast<int>((i + 1) % n))));
    return ranks;
}

using Lines = std::vector<std::string>;

TEST(Judge, CycleOfTwoAndFour) {
    EXPECT_EQ(judge(ring(2), kJob).findings, Lines{"deadlock: rank 0 waits for rank 1, which waits for rank 0"});
    EXPECT_EQ(
        judge(ring(4), kJob).findings,
        Lines{"deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 3, which waits for rank 0"});
}

TEST(Judge, ALongCycleIsDescribedBriefly) {
    const Lines found = judge(ring(100), kJob).findings;
    ASSERT_EQ(found.size(), 1u);
    EXPECT_LT(found[0].size(), 400u);
    EXPECT_NE(found[0].find("91 more"), std::string::npos) << found[0];
}

TEST(Judge, AWaitForItselfAndTwoCycles) {
    std::vector<RankReport> ranks = ring(2);
    ranks.push_back(waiting(2, Builder(4).wait("MPI_Recv").waits_for(Kind::receive, 2)));
    // Rank 3 waits for rank 0, which is in the first cycle.
    ranks.push_back(waiting(3, Builder(4).wait("MPI_Recv").waits_for(Kind::receive, 0)));
    EXPECT_EQ(judge(ranks, kJob).findings,
              (Lines{"deadlock: rank 0 waits for rank 1, which waits for rank 0", "deadlock: rank 2 waits for itself"}));
}

TEST(Judge, AShortWaitIsNoHang) {
    std::vector<RankReport> ranks = ring(2);
    ranks[1] = waiting(1, Builder(2).wait("MPI_Recv", 0.05).waits_for(Kind::receive, 0));
    EXPECT_EQ(judge(ranks, kJob).findings, Lines{});
}

TEST(Judge, AWaitForAnyOfSeveralPeersCanStillEnd) {
    std::vector<RankReport> ranks = ring(2);
    ranks[0] = waiting(0, Builder(3).wait("MPI_Waitany").any().waits_for(Kind::receive, 1).waits_for(Kind::receive, 2));
    ranks.push_back(computing(2));
    for (const std::string& line : judge(ranks, kJob).findings) EXPECT_EQ(line.find("deadlock"), std::string::npos) << line;
    ranks[2] = waiting(2, Builder(3).wait("MPI_Recv").waits_for(Kind::receive, 0));
    EXPECT_EQ(judge(ranks, kJob).findings.at(0), "deadlock: rank 0 waits for rank 1, which waits for rank 0");
}

TEST(Judge, AnAnySourceReceiveWaitsForAllMembers) {
    std::vector<RankReport> ranks = ring(3);
    ranks[0] = waiting(0, Builder(3).wait("MPI_Recv").waits_for(Kind::receive, WaitReportPage::kAnyRank));
    EXPECT_EQ(judge(ranks, kJob).findings.at(0),
              "deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0");
    ranks[2] = computing(2);
    for (const std::string& line : judge(ranks, kJob).findings) EXPECT_EQ(line.find("deadlock"), std::string::npos) << line;
}

TEST(Judge, TheRankForWhichAllOthersWait) {
    std::vector<RankReport> ranks = ring(3);
    ranks[2] = computing(2);
    EXPECT_EQ(judge(ranks, kJob).findings, Lines{"rank 0 and rank 1 wait, in the end, for rank 2, which computes"});
    ranks[2].doing = Doing::finalized;
    EXPECT_EQ(judge(ranks, kJob).findings,
              Lines{"rank 0 and rank 1 wait, in the end, for rank 2, which has called MPI_Finalize"});
}

TEST(Judge, AWaitForARankThatHasEnded) {
    std::vector<RankReport> ranks = ring(3);
    EXPECT_FALSE(judge(ranks, kJob).ended_awaited);
    for (const Doing other : {Doing::computing, Doing::starting, Doing::finalized, Doing::failed, Doing::ended}) {
        ranks[2].doing = other;
        EXPECT_FALSE(judge(ranks, kJob).ended_awaited) << name(other);
    }
    ranks[2].doing = Doing::exited;
    EXPECT_TRUE(judge(ranks, kJob).ended_awaited);
    ranks[0] = computing(0);  // rank 0 still computes, so it may send the message for which rank 1 waits
    ranks[1] = waiting(1, Builder(3).wait("MPI_Recv").waits_for(Kind::receive, 0));
    EXPECT_FALSE(judge(ranks, kJob).ended_awaited);
}

TEST(Judge, TheRankMissingFromACollective) {
    std::vector<RankReport> ranks;
    for (uint32_t i = 0; i < 3; ++i) ranks.push_back(waiting(i, Builder(4).wait("MPI_Barrier").collective(5, true)));
    ranks.push_back(waiting(3, Builder(4).wait("MPI_Recv").waits_for(Kind::receive, 1)));
    EXPECT_EQ(judge(ranks, kJob).findings, Lines{"deadlock: rank 3 waits for rank 1, which waits for rank 3"});
    ranks[3] = computing(3);
    EXPECT_EQ(judge(ranks, kJob).findings, Lines{"ranks 0 to 2 wait, in the end, for rank 3, which computes"});
}

TEST(Judge, MembersInDifferentCollectives) {
    std::vector<RankReport> ranks;
    ranks.push_back(waiting(0, Builder(2).wait("MPI_Barrier").collective(3, true)));
    ranks.push_back(waiting(1, Builder(2).wait("MPI_Bcast").collective(3, false).waits_for(Kind::member, 0)));
    EXPECT_EQ(
        judge(ranks, kJob).findings.at(0),
        "different collectives on MPI_COMM_WORLD: rank 0 is in MPI_Barrier and rank 1 is in MPI_Bcast; all members must make "
        "the same calls in the same order (this is call 3)");
    ranks[1] = waiting(1, Builder(2).wait("MPI_Barrier").collective(3, true));
    EXPECT_EQ(judge(ranks, kJob).findings, Lines{});
}

TEST(Sentence, NearMisses) {
    const RankReport wrong_tag =
        waiting(1, Builder(2).wait("MPI_Recv", 12.34).waits_for(Kind::receive, 0).message(0, 8, kContext));
    EXPECT_EQ(
        sentence(wrong_tag, kJob),
        "rank 1 waits in MPI_Recv on MPI_COMM_WORLD for rank 0, tag 7 (up to 4 bytes), for 12.3 s; rank 0 has sent it tag 8 "
        "(4 bytes)");
    const RankReport wrong_communicator =
        waiting(1, Builder(2).wait("MPI_Recv").waits_for(Kind::receive, 0).message(0, 7, kOther));
    EXPECT_NE(sentence(wrong_communicator, kJob).find("rank 0 has sent it tag 7 on other (4 bytes)"), std::string::npos);
    const RankReport unrelated = waiting(1, Builder(2).wait("MPI_Recv").waits_for(Kind::receive, 0).message(2, 9, kContext));
    EXPECT_NE(sentence(unrelated, kJob).find("; 1 more message that no receive has taken"), std::string::npos);
}

Lines texts(const std::vector<RankReport>& ranks) {
    Lines lines;
    for (const RankGroup& group : groups(ranks, kJob)) lines.push_back(group.text);
    return lines;
}

TEST(Groups, MembersOfABarrierNameTheMissingOneOnly) {
    std::vector<RankReport> ranks{computing(0)};
    ranks[0].cores = 1;
    for (uint32_t i = 1; i < 64; ++i)
        ranks.push_back(waiting(i, Builder(64).wait("MPI_Barrier", 4 + i * 0.01).collective(3, true)));
    EXPECT_EQ(texts(ranks),
              (Lines{"rank 0 computes (100 % of a core)",
                     "ranks 1 to 63 wait in MPI_Barrier on MPI_COMM_WORLD, collective 3 there, for rank 0 to call it, "
                     "for 4.0 s to 4.6 s"}));
    const CollectiveCalls collectives(ranks);
    EXPECT_EQ(sentence(ranks[5], kJob, &collectives),
              "rank 5 waits in MPI_Barrier on MPI_COMM_WORLD, collective 3 there, for rank 0 to call it, for 4.0 s");
}

TEST(Groups, AnOperationThatWaitsForNoMemberHasNoMembersInItsSentence) {
    const RankReport rank = waiting(0, Builder(2).wait("MPI_File_write_ordered_end", 3).collective(5, false));
    EXPECT_EQ(sentence(rank, kJob, nullptr),
              "rank 0 waits in MPI_File_write_ordered_end on MPI_COMM_WORLD, collective 5 there, for 3.0 s");
}

TEST(Groups, DifferentPartsOfOneTreeAreOneGroup) {
    std::vector<RankReport> ranks;
    for (uint32_t i = 0; i < 3; ++i)
        ranks.push_back(
            waiting(i, Builder(4).wait("MPI_Bcast").collective(2, false).waits_for(Kind::member, static_cast<int>(i) + 1)));
    ranks.push_back(computing(3));
    const Lines lines = texts(ranks);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0],
              "ranks 0 to 2 wait in MPI_Bcast on MPI_COMM_WORLD, collective 2 there, for rank 3 to call it, for 5.0 s");
}

TEST(Groups, DifferentStatesStayApart) {
    std::vector<RankReport> ranks = ring(3);
    for (uint32_t i = 3; i < 7; ++i) ranks.push_back(computing(i));
    for (uint32_t i = 4; i < 7; ++i) {
        ranks[i].cores = 0.5 + 0.1 * i;
        ranks[i].since_wait = 1 + i;
    }
    const Lines lines = texts(ranks);
    ASSERT_EQ(lines.size(), 5u);
    EXPECT_EQ(lines[4], "ranks 4 to 6 compute (90 to 110 % of a core): they last waited in the library 5.0 s to 7.0 s ago");
}

TEST(Names, RunsOfRanks) {
    const auto names = [](std::initializer_list<uint32_t> ranks) {
        std::vector<ProcessName> processes;
        for (uint32_t rank : ranks) processes.push_back({kJob, rank});
        return names_of(processes, kJob);
    };
    EXPECT_EQ(names({4}), "rank 4");
    EXPECT_EQ(names({5, 4}), "rank 4 and rank 5");
    EXPECT_EQ(names({1, 2, 3, 5}), "ranks 1 to 3 and 5");
    EXPECT_EQ(names({1, 2, 4, 6, 7, 8}), "ranks 1, 2, 4 and 6 to 8");
    EXPECT_EQ(names_of({{kJob, 1}, {kJob, 2}, {kJob, 3}, {1, 9}}, kJob), "ranks 1 to 3, and rank 9 of job 0000000000000001");
}

TEST(Judge, OnlyWaitsThatCannotEndAreStuck) {
    EXPECT_TRUE(judge(ring(4), kJob).stuck);
    std::vector<RankReport> ranks = ring(2);
    ranks[1] = computing(1);
    EXPECT_FALSE(judge(ranks, kJob).stuck);
    ranks[1].doing = Doing::finalized;
    EXPECT_TRUE(judge(ranks, kJob).stuck);
    ranks = {computing(0)};
    EXPECT_FALSE(judge(ranks, kJob).stuck);
    ranks[0].doing = Doing::stopped;
    EXPECT_TRUE(judge(ranks, kJob).stuck);
}

TEST(Sentence, States) {
    RankReport rank = computing(3);
    rank.cores = 0.99;
    rank.since_wait = 754;
    EXPECT_EQ(sentence(rank, kJob), "rank 3 computes (99 % of a core): it last waited in the library 12:34 min ago");
    rank.cores = 0;
    EXPECT_EQ(sentence(rank, kJob).substr(0, 42), "rank 3 is outside the library and sleeps, ");
    rank.doing = Doing::ended;
    rank.pid = 17;
    EXPECT_EQ(sentence(rank, kJob), "rank 3 is gone: there is no process 17 on here any more");
    EXPECT_EQ(sentence(rank, 1), "rank 3 of job 0000000000001234 is gone: there is no process 17 on here any more");
}

// Arbitrary bytes in the page: a report is accepted or rejected, and an accepted one can be described.
TEST(Check, GarbageIsHandledSafely) {
    std::minstd_rand random(1);
    int taken = 0;
    for (int turn = 0; turn < 20000; ++turn) {
        WaitReportPage account = Builder(2).wait("MPI_Recv").waits_for(Kind::receive, 0).message(0, 8, kContext).account;
        auto* bytes = reinterpret_cast<unsigned char*>(&account);
        for (uint32_t i = 0; i < 1 + random() % 6; ++i)
            bytes[random() % (turn % 2 ? sizeof account : 200)] = static_cast<unsigned char>(random());
        RankReport rank = computing(1);
        rank.doing = Doing::waiting;
        rank.report = check(account, kNow);
        taken += rank.report.has_value();
        EXPECT_FALSE(sentence(rank, kJob).empty());
        judge({rank, computing(0)}, kJob).findings;
    }
    EXPECT_GT(taken, 0);
    EXPECT_LT(taken, 20000);
}

TEST(Check, RangesOutsideTheTableAreRejected) {
    Builder builder(2);
    builder.wait("MPI_Recv").waits_for(Kind::receive, 0);
    builder.account.wait[0].waited.first = 0xffff;
    EXPECT_FALSE(check(builder.account, kNow));
}

}  // namespace
}  // namespace starling::hang
