// The table of ranks must name who is late, and the headline must name the cause that explains most of the lost time.
#include "starling/profile/ranks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starling/profile/headline.h"
#include "starling/profile/rank_output.h"
#include "starling/profile/show.h"
#include "written.h"

namespace starling::analysis {
namespace {

struct RankTime {
    double seconds, late_sender = 0, late_receiver = 0, collective = 0;
};

/// Adds one occurrence of a phase with these times of the ranks; each wait is at one place of its cause.
void add_times(Written& file, const std::string& name, const std::vector<RankTime>& ranks) {
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto& [seconds, sender, receiver, collective] = ranks[rank];
        const std::string head =
            fmt::format(R"("job":0,"rank":{},"phase":"{}","from":1,"to":1,"began":0,"seconds":{})", rank, name, seconds);
        const std::string peers = fmt::format("[[0,{},2,50,0,0,0,0,0,0]]", (rank + 1) % ranks.size());
        const std::string calls =
            fmt::format(R"-([["app.c:7 (sum)","world",{},"allreduce","<=64","node",100,800,{}]])-", ranks.size(), collective);
        const std::string waits =
            fmt::format(R"({{"late sender":{},"late receiver":{},"collective":{}}})", sender, receiver, collective);
        const std::string waiting =
            fmt::format(R"-([["app.c:5 (take)","MPI_Recv",{},0,0,0],["app.c:6 (give)","MPI_Send",0,{},0,0],)-"
                        R"-(["app.c:7 (sum)","MPI_Allreduce",0,0,{},0]])-",
                        sender, receiver, collective);
        file.add(fmt::format(R"({{"kind":"phase",{},"peers":{},"collectives":{},"waits":{},"waiting":{}}})", head, peers, calls,
                             waits, waiting));
    }
}

/// Adds the end of each rank, with the processors `first` to `last` and the given seconds.
void add_ends(Written& file, size_t ranks, int first, int last, double cpu, double polled, double core_wait) {
    for (size_t rank = 0; rank < ranks; ++rank)
        file.add(fmt::format(
            R"({{"kind":"end","job":0,"rank":{},"how":"finalized","cores":{{"cpus":[[{},{}]],"cpu":{},"polled":{},"waited":{}}}}})",
            rank, first, last, cpu, polled, core_wait));
}

Diagnosis headline_of(const Written& file) {
    const auto run = file.read();
    return headline(run, rank_table(run));
}

TEST(Ranks, RowsHaveComputeWaitsAndTraffic) {
    Written file = begin(3, 2);
    add_times(file, "a", {{1, 0.25}, {1, 0, 0, 0.5}, {1}});
    add_times(file, "b", {{2, 0, 1}, {2}, {2}});
    const RankTable table = rank_table(file.read());
    ASSERT_EQ(table.rows.size(), 3u);
    EXPECT_DOUBLE_EQ(table.rows[0].compute, 1.75);
    EXPECT_DOUBLE_EQ(table.rows[0].waited, 1.25);
    EXPECT_DOUBLE_EQ(table.rows[0].waits.late_receiver, 1);
    EXPECT_EQ(table.rows[0].sent.bytes, 100);
    EXPECT_EQ(table.rows[1].received.messages, 4);
    EXPECT_DOUBLE_EQ(table.least.compute, 1.75);
    EXPECT_DOUBLE_EQ(table.most.waited, 1.25);
    EXPECT_DOUBLE_EQ(table.mean.compute, (1.75 + 2.5 + 3) / 3);
    EXPECT_DOUBLE_EQ(table.seconds, 9);
}

TEST(Ranks, LateIsWhatOneComputesLongerThanTheMedianInEachPhase) {
    // Rank 1 is late in one phase, rank 2 in another: their sums are equal, and both are late.
    Written file = begin(5);
    add_times(file, "a", {{1, 0, 0, .5}, {1}, {1, 0, 0, .5}, {1, 0, 0, .5}, {1, 0, 0, .5}});
    add_times(file, "b", {{1, 0, 0, .5}, {1, 0, 0, .5}, {1}, {1, 0, 0, .5}, {1, 0, 0, .5}});
    const RankTable table = rank_table(file.read());
    EXPECT_DOUBLE_EQ(table.rows[1].late, 0.5);
    EXPECT_DOUBLE_EQ(table.rows[2].late, 0.5);
    EXPECT_DOUBLE_EQ(table.rows[0].late, 0);
    EXPECT_EQ(table.late.processes, (std::vector<uint32_t>{1, 2}));
}

TEST(Ranks, TheMeanOfTwoRunsIsTheSameTable) {
    Written file = begin(2);
    add_times(file, "a", {{1, 0, 0, 0.5}, {1}});
    Reader reader;
    for (const char* name : {"1", "2"}) {
        reader.begin_file(name);
        for (const std::string& line : file.lines) reader.take(line);
        reader.end_file();
    }
    const RankTable table = rank_table(reader.finish());
    EXPECT_DOUBLE_EQ(table.rows[0].compute, 0.5);
    EXPECT_DOUBLE_EQ(table.rows[1].late, 0.5);
    EXPECT_DOUBLE_EQ(table.seconds, 2);
}

TEST(Ranks, ALongTableIsShortenedToTheLateAndTheExtreme) {
    Written file = begin(20);
    std::vector<RankTime> times(20, {1, 0, 0, 0.5});
    times[13] = {1};
    times[4] = {1, 0, 0, 0.9};
    add_times(file, "a", times);
    const auto run = file.read();
    const std::vector<size_t> rows = notable_rows(rank_table(run), 6);
    EXPECT_EQ(rows.size(), 6u);
    EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), 13u));
    EXPECT_TRUE(std::binary_search(rows.begin(), rows.end(), 4u));
    EXPECT_EQ(ranks_as_data(run, rank_table(run), 6)["rows"].size(), 6u);
}

TEST(Ranks, RangesOfRanksAreNamed) {
    const auto run =
        begin(20).add(R"({"kind":"phase","job":0,"rank":0,"phase":"","from":1,"to":1,"began":0,"seconds":1})").read();
    EXPECT_EQ(ranks_text(run, {3}), "rank 3");
    EXPECT_EQ(ranks_text(run, {1, 2}), "ranks 1 and 2");
    EXPECT_EQ(ranks_text(run, {2, 5, 6, 7, 9}), "ranks 2, 5–7 and 9");
    EXPECT_EQ(ranks_text(run, {0, 2, 4, 6, 8, 10}), "ranks 0, 2, 4, 6 and 2 more");
}

TEST(Headline, NamesOneLateRankAndThePlaceOfTheWaits) {
    Written file = begin(4);
    add_times(file, "a", {{10, 0, 0, 3.1}, {10, 0, 0, 3.1}, {10, 0, 0, 3.1}, {10}});
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::late_ranks);
    EXPECT_EQ(
        found.text,
        "Rank 3 is late: the others wait 31 % of their time for it, most of it in MPI_Allreduce at app.c:7 (sum). Compare what "
        "it does outside of MPI with the other ranks.");
    EXPECT_NE(show(report(file.read())).find("\n" + found.text + "\n"), std::string::npos);
    EXPECT_NE(show(report(file.read())).find("\n  3 <- late  a "), std::string::npos);
}

TEST(Headline, TellsUnevenWork) {
    Written file = begin(4);
    add_times(file, "a", {{10, 0, 0, 4}, {10, 0, 0, 4}, {10}, {10}});
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::uneven_work);
    EXPECT_EQ(found.text.substr(0, 66), "The work is uneven: ranks 2 and 3 compute 4.00 s longer than the o");
}

TEST(Headline, TellsSharedCores) {
    // 16 ranks compute a second each on 2 cores, so the run takes 8 seconds.
    Written file = begin(16);
    add_times(file, "a", std::vector<RankTime>(16, {8, 6.5}));
    add_ends(file, 16, 0, 1, 1.25, 0.25, 0.5);
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::shared_cores);
    EXPECT_EQ(found.text.substr(0, 69), "16 ranks share 2 cores of a: waiting for a core takes 88 % of the tim");
}

TEST(Headline, LongCollectiveCallsOnSharedCoresAreForLackOfCores) {
    // Ranks also wait for a core outside of waits, so the collective calls take longer than the lack of cores explains.
    Written file = begin(16);
    add_times(file, "a", std::vector<RankTime>(16, {1.7, 0, 0, 1.2}));
    add_ends(file, 16, 0, 1, 0.15, 0, 0.9);
    EXPECT_EQ(headline_of(file).finding, Finding::shared_cores);
}

TEST(Headline, ALateRankOnSharedCoresIsNotTakenForALackOfCores) {
    // Rank 3 sleeps; the processor time of the others is only that of polling.
    Written file = begin(4);
    add_times(file, "a", {{10, 0, 0, 9}, {10, 0, 0, 9}, {10, 0, 0, 9}, {10}});
    add_ends(file, 4, 0, 1, 5, 4.9, 0.5);
    EXPECT_EQ(headline_of(file).finding, Finding::late_ranks);
}

TEST(Headline, TellsOtherProgramsOnTheCores) {
    Written file = begin(2);
    add_times(file, "a", {{10, 1}, {10, 1}});
    add_ends(file, 2, 0, 1, 6, 0, 3);
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::other_programs);
    EXPECT_EQ(found.text.substr(0, 91),
              "Other programs use the ranks' cores: ready ranks waited 6.00 s for a core, 30 % of their ti");
}

TEST(Headline, TellsLateSendersWithoutALateRank) {
    Written file = begin(4);
    add_times(file, "a", std::vector<RankTime>(4, {10, 4.5}));
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::late_senders);
    EXPECT_EQ(found.text.substr(0, 103),
              "Receives wait for messages 45 % of the time although no rank is late, most of it in MPI_Recv at app.c:5");
}

TEST(Headline, TellsLateReceivers) {
    Written file = begin(4);
    add_times(file, "a", std::vector<RankTime>(4, {10, 0, 2}));
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::late_receivers);
    EXPECT_NE(found.text.find("Sends wait for their receivers 20 % of the time, most of it in MPI_Send at app.c:6 (give)"),
              std::string::npos);
}

TEST(Headline, TellsCollectivesThatTakeTheTime) {
    Written file = begin(4);
    add_times(file, "a", std::vector<RankTime>(4, {10, 0, 0, 4}));
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::many_collectives);
    EXPECT_NE(found.text.find("most of it allreduce at app.c:7 (sum) (100 calls of 40.0 ms each)"), std::string::npos)
        << found.text;
}

TEST(Headline, TellsThatOnlyTheComputationIsLeft) {
    Written file = begin(4);
    add_times(file, "a", std::vector<RankTime>(4, {10, 0.1}));
    const Diagnosis found = headline_of(file);
    EXPECT_EQ(found.finding, Finding::computation);
    EXPECT_EQ(found.text, "The ranks compute 99 % of the time: to be faster, the computation must become faster.");
    Written alone = begin(1);
    add_times(alone, "a", {{1}});
    EXPECT_EQ(headline_of(alone).text, "One process ran alone: it waited for no other.");
}

TEST(Headline, TheCauseThatExplainsMostComesFirst) {
    // Rank 3 is late by a second, but sends wait longer.
    Written file = begin(4);
    add_times(file, "a", {{10, 0, 5, 1}, {10, 0, 5, 1}, {10, 0, 5, 1}, {10, 0, 5, 0}});
    const auto run = file.read();
    const std::vector<Diagnosis> all = diagnose(run, rank_table(run));
    ASSERT_GE(all.size(), 3u);
    EXPECT_EQ(all[0].finding, Finding::late_receivers);
    EXPECT_EQ(all[1].finding, Finding::late_ranks);
    EXPECT_EQ(all.back().finding, Finding::computation);
}

}  // namespace
}  // namespace starling::analysis
