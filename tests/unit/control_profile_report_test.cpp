// Reports of ranks for the profile: their encoding and their sums.
#include <gtest/gtest.h>

#include "control/profile_report.h"

namespace starling::control {
namespace {

using Phase = ProfileReport::PhaseRecord;

Phase a_phase(uint64_t occurrence) {
    Phase phase;
    phase.name = "step";
    phase.mark = 1;
    phase.from = phase.to = occurrence;
    phase.began_ns = 1'800'000'000'000'000'000 + occurrence * 1000;
    phase.ns = 500;
    for (size_t i = 0; i < ProfileReport::kCauses; ++i) phase.waits_ns[i] = i;
    phase.peers = {{0xfedcba9876543210, 3, {1, 0, 300}, {8, 0, ~uint64_t{0}}, 127, 128}, {7, 0, {2, 0, 0}, {16, 0, 0}, 0, 0}};
    phase.peers[1].accesses[1] = 5;
    phase.peers[1].access_bytes[1] = 500;
    phase.peers[1].packet_accesses = 3;
    phase.peers[1].connection_access_bytes = 1;
    phase.collectives = {{"program+0x12", "allreduce", "node", 0x123456789abcdef0, 4, 0, true, 2, 16, 1000, 600000.5}};
    phase.sizes = {{8, 3, 20}, {1024, 1, 600}};
    phase.files = {{"out.dat", "program+0x34", "MPI_File_write_at", 3, 3000, 700}};
    phase.connections = {{10, 7, 0, true}, {20, 7, 0, false}};
    sort(phase);
    return phase;
}

TEST(ProfileReport, SurvivesEncodingAndDecoding) {
    const ProfileReport report{true, {a_phase(1), a_phase(2), {}}, {}, {}};
    ProfileReport back;
    ASSERT_TRUE(decode(encode(report), back));
    EXPECT_EQ(back.last, report.last);
    EXPECT_EQ(back.phases, report.phases);
    ASSERT_TRUE(decode(encode(ProfileReport{}), back));
    EXPECT_FALSE(back.last);
    EXPECT_TRUE(back.phases.empty());
}

TEST(ProfileReport, ModulesAndCoresFollowThePhases) {
    ProfileReport report{true, {a_phase(1)}, {{"program", "/home/program", "ab12"}}, {{{0, 3}, {8, 9}}, 10, 2, 300}};
    ProfileReport back;
    ASSERT_TRUE(decode(encode(report), back));
    EXPECT_EQ(back.phases, report.phases);
    EXPECT_EQ(back.modules, report.modules);
    EXPECT_EQ(back.cores, report.cores);
    const std::string whole = encode(report);
    for (size_t length = 0; length < whole.size(); ++length)
        EXPECT_FALSE(decode(std::string_view(whole).substr(0, length), back)) << length;
}

TEST(ProfileReport, MalformedReportsAreRefused) {
    const std::string whole = encode(ProfileReport{false, {a_phase(1)}, {}, {}});
    ProfileReport back;
    for (size_t length = 0; length < whole.size(); ++length)
        EXPECT_FALSE(decode(std::string_view(whole).substr(0, length), back)) << length;
    EXPECT_FALSE(decode(whole + "x", back));
    std::string neither = whole;
    neither[0] = 16;
    EXPECT_FALSE(decode(neither, back));
}

TEST(ProfileReport, FilesFollowTheSizes) {
    Phase phase = a_phase(1), later = a_phase(2);
    const std::string with = encode(ProfileReport{true, {phase}});
    EXPECT_EQ(with[0], 11);
    later.files.push_back({"out.dat", "program+0x34", "MPI_File_close", 1, 0, 50});
    later.files.push_back({"a.dat", "program+0x34", "MPI_File_open", 1, 0, 50});
    sort(later);
    merge(phase, later);
    ASSERT_EQ(phase.files.size(), 3u);
    EXPECT_EQ(phase.files[0].file, "a.dat");
    EXPECT_EQ(phase.files[2], (ProfileReport::FileRecord{"out.dat", "program+0x34", "MPI_File_write_at", 6, 6000, 1400}));
    ProfileReport report{true, {phase}}, back;
    ASSERT_TRUE(decode(encode(report), back));
    EXPECT_EQ(back.phases, report.phases);
    remove_additions(report);
    EXPECT_TRUE(report.phases[0].files.empty());
}

TEST(ProfileReport, WithoutSizesAReportIsThatOfOlderReleases) {
    Phase phase = a_phase(1);
    phase.files.clear();
    const std::string with = encode(ProfileReport{true, {phase}});
    phase.sizes.clear();
    const std::string without = encode(ProfileReport{true, {phase}});
    EXPECT_EQ(without[0], 1);
    EXPECT_EQ(with[0], 3);
    EXPECT_EQ(with.substr(1, without.size() - 1), without.substr(1)) << "sizes follow all phases";
    ProfileReport back;
    ASSERT_TRUE(decode(without, back));
    EXPECT_TRUE(back.phases[0].sizes.empty());
    EXPECT_FALSE(back.lists_sizes);
    EXPECT_FALSE(knows_sizes(1 << 16));
    EXPECT_TRUE(knows_sizes(1 << 16 | 1));
}

// A root of an older release must refuse all reports of a rank until the first one has been repeated.
TEST(ProfileReport, AReportThatListsSizesIsRefusedByOlderReleasesEvenIfThereAreNone) {
    Phase phase = a_phase(1);
    phase.files.clear();
    phase.sizes.clear();
    ProfileReport report{true, {phase}}, back;
    EXPECT_FALSE(has_additions(report));
    report.lists_sizes = true;
    EXPECT_TRUE(has_additions(report));
    EXPECT_EQ(encode(report)[0], 3);
    ASSERT_TRUE(decode(encode(report), back));
    EXPECT_TRUE(back.lists_sizes);
    EXPECT_EQ(back.phases, report.phases);
    remove_additions(report);
    EXPECT_EQ(encode(report)[0], 1);
}

TEST(ProfileReport, NumbersHaveOneEncoding) {
    ProfileReport back;
    // `last` is a packed number, and a count of zero phases follows.
    EXPECT_TRUE(decode(std::string("\0\0\0\0\0", 5), back));
    EXPECT_FALSE(decode(std::string("\x80\0\0\0\0\0", 6), back)) << "the packed number 0 takes two bytes";
}

TEST(ProfileReport, HostileCountsAllocateNothing) {
    ProfileReport back;
    EXPECT_FALSE(decode(std::string("\0\xff\xff\xff\xff", 5), back));
    EXPECT_EQ(back.phases.capacity(), 0u);
}

TEST(ProfileReport, EntriesOfOnePeerAreAddedUp) {
    Phase phase;
    phase.peers = {{7, 1, {1, 0, 0}, {8, 0, 0}, 1, 8}, {7, 0, {}, {}, 0, 0}, {7, 1, {}, {}, 0, 0, {2, 0, 0}, {16, 0, 0}, 1, 8}};
    sort(phase);
    ASSERT_EQ(phase.peers.size(), 2u);
    EXPECT_EQ(phase.peers[1], (ProfileReport::PeerRecord{7, 1, {1, 0, 0}, {8, 0, 0}, 1, 8, {2, 0, 0}, {16, 0, 0}, 1, 8}));
}

TEST(ProfileReport, OccurrencesAreSummedUp) {
    Phase sum = a_phase(4), later = a_phase(5);
    later.peers.push_back({7, 1, {1, 0, 0}, {5, 0, 0}, 0, 0});
    later.peers.push_back({1, 9, {1, 0, 0}, {5, 0, 0}, 0, 0});
    later.collectives.push_back({"program+0x12", "allreduce", "ring", 0x123456789abcdef0, 4, 0, false, 1, 8, 10, 100});
    later.sizes.push_back({64, 1, 33});
    sort(later);
    merge(sum, later);
    EXPECT_EQ(sum.from, 4u);
    EXPECT_EQ(sum.to, 5u);
    EXPECT_EQ(sum.ns, 1000u);
    EXPECT_EQ(sum.waits_ns[3], 6u);
    ASSERT_EQ(sum.peers.size(), 4u);
    EXPECT_EQ(sum.peers[0].rank, 9u) << "peers are sorted by job, then by rank";
    EXPECT_EQ(sum.peers[1],
              (ProfileReport::PeerRecord{7, 0, {4, 0, 0}, {32, 0, 0}, 0, 0, {0, 10, 0}, {0, 1000, 0}, 6, 0, 0, 2}));
    EXPECT_EQ(sum.peers[3].messages[2], 600u);
    EXPECT_EQ(sum.peers[3].connection_bytes, 256u);
    ASSERT_EQ(sum.collectives.size(), 2u);
    EXPECT_EQ(sum.collectives[0].calls, 4u);
    EXPECT_EQ(sum.sizes, (std::vector<ProfileReport::SizeRecord>{{8, 6, 40}, {64, 1, 33}, {1024, 2, 1200}}));
    ASSERT_EQ(sum.connections.size(), 4u);
    EXPECT_EQ(sum.connections[2].at_ns, 1010u) << "the time counts from the begin of the first occurrence";
}

TEST(ProfileReport, ConnectionsHaveALimit) {
    Phase sum = a_phase(1);
    for (uint64_t i = 2; i < 2 * kMostConnections; ++i) merge(sum, a_phase(i));
    EXPECT_EQ(sum.connections.size(), kMostConnections);
    EXPECT_EQ(sum.peers.size(), 2u);
    EXPECT_LT(footprint(sum), 64u << 10);
}

}  // namespace
}  // namespace starling::control
