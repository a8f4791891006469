// The layout of a job's programs in messages, which all releases with the same wire version read.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "base/wire.h"
#include "launch/common/client_protocol.h"
#include "launch/common/order.h"
#include "launch/common/placement_preview.h"
#include "launch/common/process_table.h"

namespace starling::launch {
namespace {

Submission submission(bool uncounted) {
    Submission one;
    one.spec.programs.resize(1);
    Program& program = one.spec.programs[0];
    program.argv = {"a.out"};
    program.count = 3;
    program.uncounted = uncounted;
    program.directory = "/home";
    program.forward = Forward::all;
    program.appnum = 5;
    return one;
}

// Reads the word after the fields of Wire 1.0 that precede it.
uint32_t forward_word(const std::string& bytes) {
    Reader reader(bytes);
    reader.number<uint32_t>();                 // wire version
    reader.string();                           // release
    EXPECT_EQ(reader.number<uint32_t>(), 1u);  // programs
    EXPECT_EQ(reader.number<uint32_t>(), 1u);  // words
    EXPECT_EQ(reader.string(), "a.out");
    EXPECT_EQ(reader.number<uint32_t>(), 3u);  // processes
    EXPECT_EQ(reader.string(), "/home");       // directory
    EXPECT_EQ(reader.string(), "");            // search path
    EXPECT_EQ(reader.number<uint32_t>(), 0u);  // variables
    const auto word = reader.number<uint32_t>();
    EXPECT_EQ(reader.number<int32_t>(), 5);  // number of the command
    return word;
}

TEST(ProgramLayout, OlderReleasesReadAProgramWithANumberAndRefuseOneWithout) {
    EXPECT_EQ(forward_word(encode(submission(false))), static_cast<uint32_t>(Forward::all));
    EXPECT_GT(forward_word(encode(submission(true))), static_cast<uint32_t>(Forward::none));
}

TEST(ProgramLayout, IsReadBack) {
    for (const bool uncounted : {false, true}) {
        Submission read;
        ASSERT_TRUE(decode(encode(submission(uncounted)), read));
        EXPECT_EQ(read.spec.programs[0].uncounted, uncounted);
        EXPECT_EQ(read.spec.programs[0].forward, Forward::all);
        EXPECT_EQ(read.spec.programs[0].count, 3u);
    }
}

TEST(StartReport, IsEqualOnAllHostsThatStartedTheirProcesses) {
    StartReport report;
    report.text = "why";
    EXPECT_EQ(encode(report),
              Writer().number(0).number(0u).number(0u).string("why").take());  // so that the tree merges it; as in wire 1.0
    StartReport read;
    ASSERT_TRUE(decode(encode(report), read));
    EXPECT_FALSE(read.cannot_run);
    report.cannot_run = true;
    ASSERT_TRUE(decode(encode(report), read));
    EXPECT_TRUE(read.cannot_run);
    EXPECT_FALSE(decode(encode(report) + "x", read));
}

TEST(ProcessTable, HasHostAndProgramOfEachProcess) {
    ProcessTable table{{"a"}, {"/bin/one", "/bin/two"}, {{0, 0, 17}, {0, 1, 4'000'000}}}, read;
    ASSERT_TRUE(decode(encode(table), read));
    EXPECT_EQ(read.programs, table.programs);
    ASSERT_EQ(read.rows.size(), 2u);
    EXPECT_EQ(read.rows[1].program, 1u);
    EXPECT_EQ(read.rows[1].pid, 4'000'000u);
    table.rows[1].program = 2;  // there is no such program
    EXPECT_FALSE(decode(encode(table), read));
    table.rows[1] = {1, 0, 17};  // nor such a host
    EXPECT_FALSE(decode(encode(table), read));
}

TEST(SubmissionReply, HasAVersionOnlyForClientsThatReadIt) {
    SubmissionReply reply, read;
    reply.text = "why";
    EXPECT_EQ(encode(reply), Writer().number(0).number(0u).string("why").number(0u).take());  // as in wire 1.0
    reply.cannot_run = true;
    reply.failed_program = 2;
    ASSERT_TRUE(decode(encode(reply), read));
    EXPECT_EQ(std::tuple(read.version, read.cannot_run, read.failed_program), std::tuple(0u, false, 0u));
    reply.version = 0x10001;
    ASSERT_TRUE(decode(encode(reply), read));
    EXPECT_EQ(std::tuple(read.version, read.cannot_run, read.failed_program), std::tuple(0x10001u, true, 2u));
}

TEST(PlacementPreview, HasAHostForEachRank) {
    PlacementPreview preview{"", {2, 1}, {"a", "b"}, {0, 1, 0}, {"b"}}, read;
    ASSERT_TRUE(decode(encode(preview), read));
    EXPECT_EQ(read.counts, preview.counts);
    EXPECT_EQ(read.hosts, preview.hosts);
    EXPECT_EQ(read.host_of_rank, preview.host_of_rank);
    EXPECT_EQ(read.assumed, preview.assumed);
    preview.host_of_rank[1] = 2;  // there is no such host
    EXPECT_FALSE(decode(encode(preview), read));
    preview.host_of_rank[1] = 1;
    preview.counts[0] = UINT32_MAX;  // nor so many ranks
    EXPECT_FALSE(decode(encode(preview), read));
}

}  // namespace
}  // namespace starling::launch
