// Segment views: reading a segment ends safely, whatever bytes are in it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "job/segment_view.h"
#include "mpi.h"

using namespace starling;
using namespace starling::job;

namespace {

int look(int fd, SegmentView& out, bool of_anybody = false) { return SegmentView::open(getpid(), fd, of_anybody, out); }

/// Reads every field of the view.
uint64_t use(const SegmentView& sight) {
    uint64_t sum = static_cast<uint64_t>(sight.state()) + sight.command().size() + sight.my_host().size();
    for (const std::string& host : sight.other_hosts()) sum += host.size();
    for (uint32_t i = 0; i < sight.ranks(); ++i) {
        EXPECT_LT(sight.rank(i), sight.size());
        sum += sight.cell(i).replies.load() + sight.place(i) + static_cast<uint64_t>(sight.region(i)[kRegionStride - 1]);
    }
    return sum;
}

JobDescription description() {
    JobDescription job;
    job.draw();
    job.size = 6;
    job.hosts.resize(2);
    std::strcpy(job.hosts[0].name, "here");
    std::strcpy(job.hosts[1].name, "there");
    job.placements = {{0, 2, 3, 0, 0}, {1, 2, 3, 1, 0}};
    job.command = "a.out";
    return job;
}

class SegmentViewTest : public testing::Test {
  protected:
    SegmentViewTest() { EXPECT_EQ(JobSegment::create(description(), 0, segment), MPI_SUCCESS); }
    void expect_damaged(const char* what, const std::function<void(JobHeader&)>& damage) {
        JobSegment other;
        ASSERT_EQ(JobSegment::create(description(), 0, other), MPI_SUCCESS);
        damage(other.header());
        SegmentView sight;
        EXPECT_EQ(look(other.fd(), sight), MPI_ERR_PROC_ABORTED) << what;
    }
    JobSegment segment;
};

TEST_F(SegmentViewTest, ReadsAJob) {
    SegmentView sight;
    ASSERT_EQ(look(segment.fd(), sight), MPI_SUCCESS);
    EXPECT_EQ(sight.id(), segment.header().id);
    EXPECT_EQ(sight.command(), "a.out");
    EXPECT_EQ(sight.my_host(), "here");
    EXPECT_EQ(sight.other_hosts(), std::vector<std::string>{"there"});
    ASSERT_EQ(sight.ranks(), 3u);
    for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(sight.rank(i), 2 * i);
    segment.cell(4).pid.store(17);
    segment.header().state.store(JobState::failed);
    EXPECT_EQ(sight.cell(2).pid.load(), 17);
    EXPECT_EQ(sight.state(), JobState::failed);
}

TEST_F(SegmentViewTest, RefusesDamagedSegments) {
    expect_damaged("no runs", [](JobHeader& header) { header.runs = 0; });
    expect_damaged("a run twice", [](JobHeader& header) {
        auto* runs = reinterpret_cast<Placement*>(reinterpret_cast<std::byte*>(&header) + header.runs_offset);
        runs[1] = runs[0];
    });
    expect_damaged("a rank beyond the last", [](JobHeader& header) {
        reinterpret_cast<Placement*>(reinterpret_cast<std::byte*>(&header) + header.runs_offset)->stride = 1u << 31;
    });
    expect_damaged("many hosts", [](JobHeader& header) { header.hosts = ~0u; });
    expect_damaged("many ranks", [](JobHeader& header) { header.local_ranks = header.size = 1u << 28; });
    expect_damaged("regions elsewhere", [](JobHeader& header) { header.regions_offset = ~0ull << 12; });
    expect_damaged("regions of another size", [](JobHeader& header) { header.region_stride = 4096; });
}

TEST_F(SegmentViewTest, LaterChangesOfTheSegmentDoNotAffectTheView) {
    SegmentView sight;
    ASSERT_EQ(look(segment.fd(), sight), MPI_SUCCESS);
    std::memset(static_cast<void*>(&segment.header()), 0xa5, segment.header().blob_offset);
    EXPECT_EQ(sight.ranks(), 3u);
    EXPECT_GT(use(sight), 0u);
}

TEST_F(SegmentViewTest, ArbitraryWordsAreReadSafely) {
    std::mt19937_64 draw(7);
    const uint64_t table = segment.header().cells_offset;
    std::string whole(reinterpret_cast<const char*>(&segment.header()), table);
    const uint64_t odd[] = {0, 1, 7, 64, 4096, 1u << 16, ~0u, 1ull << 31, 1ull << 47, ~0ull, 1ull << 63};
    for (int turn = 0; turn < 20000; ++turn) {
        std::memcpy(static_cast<void*>(&segment.header()), whole.data(), whole.size());
        for (uint64_t words = 1 + draw() % 3; words > 0; --words) {
            // Offsets in the meaningful part of the header, or in the hosts and runs after it.
            const uint64_t at =
                draw() % 3 == 0 ? sizeof(JobHeader) + draw() % (table - sizeof(JobHeader)) / 4 * 4 : draw() % 512 / 4 * 4;
            const uint64_t value = draw() % 2 == 0 ? odd[draw() % std::size(odd)] : draw();
            std::memcpy(reinterpret_cast<char*>(&segment.header()) + at, &value, draw() % 2 == 0 ? 4 : 8);
        }
        SegmentView sight;
        if (look(segment.fd(), sight) == MPI_SUCCESS) use(sight);
    }
    std::memcpy(static_cast<void*>(&segment.header()), whole.data(), whole.size());
}

TEST_F(SegmentViewTest, SegmentsThatCanShrinkAreRefused) {
    const int fd = memfd_create("starling-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ASSERT_EQ(ftruncate(fd, static_cast<off_t>(segment.bytes())), 0);
    ASSERT_EQ(pwrite(fd, &segment.header(), segment.header().blob_offset, 0),
              static_cast<ssize_t>(segment.header().blob_offset));
    SegmentView sight;
    EXPECT_EQ(look(fd, sight), MPI_ERR_PROC_ABORTED);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    EXPECT_EQ(look(fd, sight), MPI_SUCCESS);
    close(fd);
    EXPECT_EQ(look(0, sight), MPI_ERR_PROC_ABORTED);
}

TEST_F(SegmentViewTest, SegmentsOfOtherUsersAreRefused) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to be another user";
    ASSERT_EQ(fchown(segment.fd(), 65534, 65534), 0);
    SegmentView sight;
    EXPECT_EQ(look(segment.fd(), sight), MPI_ERR_PROC_ABORTED);
    EXPECT_EQ(look(segment.fd(), sight, true), MPI_SUCCESS);
}

TEST_F(SegmentViewTest, ControlCharactersAreNotShown) {
    std::strcpy(segment.header().command, "\033]0;title\a\033[31mred\xc2\x9b \xc3\xa4");
    std::memset(segment.host(1).name, 27, sizeof segment.host(1).name);
    SegmentView sight;
    ASSERT_EQ(look(segment.fd(), sight), MPI_SUCCESS);
    EXPECT_EQ(sight.command(), "?]0;title??[31mred?? \xc3\xa4");
    EXPECT_EQ(sight.other_hosts()[0], std::string(64, '?'));
}

}  // namespace
