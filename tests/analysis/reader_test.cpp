// The reader must return a profile's contents exactly, and refuse a file that is not a profile with an error text.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "starling/profile/pairs.h"
#include "starling/profile/report.h"
#include "starling/profile/table.h"
#include "written.h"

namespace starling::analysis {
namespace {

std::string refusal_of(const Written& file) {
    try {
        file.read("x.jsonl");
    } catch (const Refusal& refusal) { return refusal.what(); }
    return "accepted";
}

TEST(Reader, GivesTheMatrixThatWasWritten) {
    Written file = begin(4, 2);
    add_phase(file, 4, "step", 1, 1, 0, {{0, {{1, 10}, {3, 5}}}, {1, {{0, 20}}}, {2, {{2, 7}}}}, 5);
    const auto run = file.read();
    ASSERT_EQ(run.spans.size(), 1u);
    EXPECT_EQ(run.application, "made-up");
    EXPECT_EQ(run.spans[0].all().messages, 42);
    EXPECT_EQ(run.spans[0].all().bytes, 4200);
    EXPECT_DOUBLE_EQ(run.spans[0].waits.late_sender, 0.4);
    EXPECT_EQ(run.host_of(1), "a");
    EXPECT_EQ(run.host_of(2), "b");
    const std::vector<Pair> pairs = pairs_of(run);
    ASSERT_EQ(pairs.size(), 2u);  // messages of rank 2 to itself form no pair
    EXPECT_EQ(pairs[0].a, 0u);
    EXPECT_EQ(pairs[0].b, 1u);
    EXPECT_EQ(pairs[0].all.messages, 30);
    EXPECT_EQ(pairs[0].on_connection.messages, 15);
    EXPECT_EQ(pairs[1].b, 3u);
    EXPECT_EQ(pairs[1].all.messages, 5);
}

TEST(Reader, RangesOfProcessorsAscend) {
    const auto with = [](const char* cpus) {
        Written file = begin(1);
        add_phase(file, 1, "p", 1, 1, 0, {});
        file.add(fmt::format(
            R"({{"kind":"end","job":0,"rank":0,"how":"finalized","cores":{{"cpus":{},"cpu":1,"polled":0,"waited":0}}}})",
            cpus));
        return refusal_of(file);
    };
    EXPECT_EQ(with("[[0,3],[8,8]]"), "accepted");
    for (const char* cpus : {"[[0,5000],[0,5000]]", "[[8,9],[0,3]]"})
        EXPECT_NE(with(cpus).find("the first processor of a range"), std::string::npos) << with(cpus);
}

TEST(Table, TextHasNoCommandsToTheTerminal) {
    EXPECT_EQ(without_controls("a\x1b]0;title\x07 b\nc \xe2\x96\x88 \x7f\xc2\x9b"), "a?]0;title? b\nc \xe2\x96\x88 ?\xc2?");
}

TEST(Reader, DealsOutWhatWasSummedUp) {
    // Rank 0 reports occurrences 1 to 4 as one sum, rank 1 reports occurrence 1 and the sum of 2 to 4. The reader must split rank 0's sum
    // at the same place.
    Written file = begin(2);
    file.add(
        R"({"kind":"phase","job":0,"rank":0,"phase":"p","from":1,"to":4,"began":0,"seconds":4,"peers":[[0,1,8,80,0,0,0,0,0,0]]})");
    file.add(R"({"kind":"phase","job":0,"rank":1,"phase":"p","from":1,"to":1,"began":0,"seconds":1,"peers":[]})");
    file.add(
        R"({"kind":"phase","job":0,"rank":1,"phase":"p","from":2,"to":4,"began":1,"seconds":3,"peers":[[0,0,0,0,3,3000,0,0,0,0]]})");
    const auto run = file.read();
    ASSERT_EQ(run.spans.size(), 2u);
    EXPECT_EQ(run.spans[0].to, 1u);
    EXPECT_EQ(run.spans[0].all().messages, 2);
    EXPECT_EQ(run.spans[1].from, 2u);
    EXPECT_EQ(run.spans[1].to, 4u);
    EXPECT_EQ(run.spans[1].sizes[small].messages, 6);
    EXPECT_EQ(run.spans[1].sizes[pool].bytes, 3000);
    EXPECT_DOUBLE_EQ(run.spans[1].began, 1);
    EXPECT_DOUBLE_EQ(run.spans[1].seconds, 3);
}

TEST(Reader, AccessesByPacketsCountAsMessagesDo) {
    Written file = begin(3);
    file.add(
        R"({"kind":"phase","job":0,"rank":0,"phase":"p","from":1,"to":1,"began":0,"seconds":1,"peers":[[0,1,8,80,0,0,0,0,2,20]],)"
        R"("accesses":[[0,1,3,30,2,20,1,8,4,40,1,10],[0,2,0,0,9,90,0,0,0,0,0,0]]})");
    const auto run = file.read();
    ASSERT_EQ(run.spans.size(), 1u);
    EXPECT_EQ(run.spans[0].accesses[Access::put].bytes, 30);
    EXPECT_EQ(run.spans[0].accesses[Access::get].messages, 11);
    EXPECT_EQ(run.spans[0].accesses[Access::update].messages, 1);
    EXPECT_EQ(run.spans[0].all().messages, 12);
    const std::vector<Pair> pairs = pairs_of(run);
    ASSERT_EQ(pairs.size(), 2u);
    EXPECT_EQ(pairs[0].all.messages, 12);
    EXPECT_EQ(pairs[0].on_connection.messages, 3);
    EXPECT_EQ(pairs[0].in_memory.messages, 2);
    EXPECT_EQ(pairs[1].all.messages, 0);
    EXPECT_EQ(pairs[1].in_memory.bytes, 90);
}

TEST(Reader, AddsUpTheCallsForFilesOfAllProcesses) {
    Written file = begin(2);
    for (const int rank : {0, 1})
        file.add(
            fmt::format(R"({{"kind":"phase","job":0,"rank":{},"phase":"p","from":1,"to":1,"began":0,"seconds":1,)"
                        R"("files":[["out","a+0x1","MPI_File_write_all",2,600,0.5],["in","a+0x2","MPI_File_open",1,0,0.25]]}})",
                        rank));
    const auto run = file.read();
    ASSERT_EQ(run.file_calls.size(), 2u);
    const Calls& writes = run.file_calls.at({"out", "a+0x1", "MPI_File_write_all"});
    EXPECT_EQ(writes.calls, 4);
    EXPECT_EQ(writes.bytes, 1200);
    EXPECT_EQ(writes.seconds, 1);
    const Data data = report(run);
    EXPECT_EQ(data["accessed_files"][0]["written_bytes"], 1200);
    EXPECT_EQ(data["accessed_files"][1]["opened"], 2);
    EXPECT_EQ(data["file_calls"][0]["call"], "MPI_File_write_all");
}

TEST(Reader, MergesRunsToTheirMean) {
    Reader reader;
    for (const uint64_t messages : {10u, 30u}) {
        Written file = begin(3);
        add_phase(file, 3, "step", 1, 1, 0, {{0, {{1, messages}}}});
        if (messages == 30) add_phase(file, 3, "step", 2, 2, 1, {{0, {{2, 8}}}});
        reader.begin_file("run" + std::to_string(messages));
        for (const std::string& line : file.lines) reader.take(line);
        reader.end_file();
    }
    const auto run = reader.finish();
    ASSERT_EQ(run.spans.size(), 2u);
    EXPECT_EQ(run.spans[0].all().messages, 20);
    EXPECT_EQ(run.spans[1].all().messages, 4);  // average over two runs, only one of which has a second step
    EXPECT_DOUBLE_EQ(run.spans[0].seconds, 0.5);
}

TEST(Reader, KnowsJobsThatWereSpawned) {
    Written file = begin(2);
    file.add(R"({"kind":"job","job":1,"parent":0,"size":2,"hosts":["b"],"places":[[0,0,2]]})");
    file.add(
        R"({"kind":"phase","job":1,"rank":1,"phase":"","from":1,"to":1,"began":0,"seconds":1,"peers":[[0,0,1,8,0,0,0,0,1,8]]})");
    const auto run = file.read();
    EXPECT_EQ(run.processes, 4u);
    EXPECT_EQ(run.jobs[1].parent, 0);
    const std::vector<Pair> pairs = pairs_of(run);
    ASSERT_EQ(pairs.size(), 1u);
    EXPECT_EQ(run.name_of(pairs[0].a), "0.0");
    EXPECT_EQ(run.name_of(pairs[0].b), "1.1");
}

TEST(Reader, KnowsOfOtherJobsWhatWasMet) {
    Written file = begin(2);
    file.add(R"({"kind":"job","job":1,"parent":null,"size":0,"hosts":[],"places":[]})");
    file.add(R"({"kind":"job","job":2,"parent":null,"size":0,"hosts":[],"places":[]})");
    file.add(
        R"({"kind":"phase","job":0,"rank":1,"phase":"","from":1,"to":1,"began":0,"seconds":1,"peers":[[1,5,1,8,0,0,0,0,1,8]]})");
    const auto run = file.read();
    EXPECT_EQ(run.processes, 8u);
    ASSERT_EQ(run.jobs.size(), 2u);
    EXPECT_EQ(run.host_of(7), "?");
    EXPECT_EQ(run.name_of(7), "1.5");
}

TEST(Reader, PassesOverWhatALaterVersionMayAdd) {
    Written file = begin(1);
    file.add(R"({"kind":"weather","sun":true})")
        .add("")
        .add(R"({"kind":"phase","job":0,"rank":0,"phase":"","from":1,"to":1,"began":0,"seconds":1,"peers":[],"colour":"red"})");
    EXPECT_EQ(refusal_of(file), "accepted");
}

TEST(Reader, RefusesWithASentence) {
    const auto after_head = [](const std::string& line) {
        Written file = begin(4);
        return refusal_of(file.add(line));
    };
    const auto phase = [&](const std::string& peers, const std::string& more = "") {
        return after_head(R"({"kind":"phase","job":0,"rank":0,"phase":"p","from":1,"to":1,"began":0,"seconds":1,"peers":)" +
                          peers + more + "}");
    };
    EXPECT_EQ(refusal_of(Written{}), "x.jsonl is empty: mpiexec --profile writes profiles");
    EXPECT_EQ(refusal_of(begin(2)), "x.jsonl has no phase of any process: the job ended before the first phase did");
    EXPECT_EQ(refusal_of(Written{{"hello"}}), "x.jsonl, line 1: this is not JSON");
    EXPECT_EQ(refusal_of(Written{{"[1]"}}), "x.jsonl, line 1: this line is not a JSON object");
    EXPECT_EQ(refusal_of(Written{{R"({"kind":"job"})"}}),
              "x.jsonl, line 1: this line comes before the \"profile\" line, which must be the first");
    EXPECT_EQ(refusal_of(Written{{R"({"kind":"profile","version":2})"}}),
              "x.jsonl, line 1: version 2 of the format, but this starling reads version 1");
    EXPECT_EQ(after_head(R"({"kind":"end","job":0,"rank":4,"how":"finalized"})"),
              "x.jsonl, line 3: a rank is not a whole number from 0 to 3");
    EXPECT_EQ(after_head(R"({"kind":"end","job":7,"rank":0,"how":"finalized"})"),
              "x.jsonl, line 3: job 7 was not described before");
    EXPECT_EQ(phase("[[0,1,2]]"), "x.jsonl, line 3: a peer has 3 numbers instead of 10");
    EXPECT_EQ(phase("[[0,1,-1,0,0,0,0,0,0,0]]"), "x.jsonl, line 3: a number of messages is not a number of at least 0");
    EXPECT_EQ(phase("[[0,1,1,8,0,0,0,0,2,16]]"),
              "x.jsonl, line 3: a peer has more messages on connections than messages in total");
    EXPECT_EQ(phase("[]", R"(,"accesses":[[0,1]])"), "x.jsonl, line 3: the accesses of a process has 2 numbers instead of 12");
    EXPECT_EQ(phase("[]", R"(,"accesses":[[0,1,1,8,0,0,0,0,2,16,0,0]])"),
              "x.jsonl, line 3: a process has more accesses by packets, or on connections, than accesses in total");
    EXPECT_EQ(phase("[]", R"(,"files":[["a"]])"), "x.jsonl, line 3: the accesses to a file has 1 numbers instead of 6");
    EXPECT_EQ(phase("[]", R"(,"waits":[])"), "x.jsonl, line 3: \"waits\" is not an object");
    EXPECT_EQ(phase("[]", R"(,"connections":[[0,0,1,"torn"]])"),
              "x.jsonl, line 3: a connection was torn; it must be opened or closed");
    EXPECT_EQ(after_head(R"({"kind":"phase","job":0,"rank":0,"phase":"p","from":2,"to":1,"began":0,"seconds":1})"),
              "x.jsonl, line 3: \"to\" is not a whole number from 2 to 9007199254740992");
    EXPECT_EQ(after_head(R"({"kind":"job","job":0,"parent":null,"size":5,"hosts":[],"places":[]})"),
              "x.jsonl, line 3: job 0 has 5 processes, but 4 before: only runs of one size can be merged (starling profile "
              "plan --size "
              "scales a plan)");
}

TEST(Reader, MergesOneApplicationOnly) {
    Reader reader;
    Written one = begin(1);
    add_phase(one, 1, "p", 1, 1, 0, {});
    reader.begin_file("one");
    for (const std::string& line : one.lines) reader.take(line);
    reader.end_file();
    reader.begin_file("two");
    try {
        reader.take(begin(1, 0, "other").lines[0]);
        FAIL();
    } catch (const Refusal& refusal) {
        EXPECT_STREQ(refusal.what(),
                     "two, line 1: the application is other, but made-up in one: only runs of one application can be merged");
    }
}

}  // namespace
}  // namespace starling::analysis
