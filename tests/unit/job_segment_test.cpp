#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstring>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/version.h"
#include "job/doorbell.h"
#include "job/environment.h"
#include "job/job_segment.h"
#include "mpi.h"

namespace starling::job {
namespace {

TEST(Address, SurvivesEncodingAndDecoding) {
    const JobAddress address{0x123456789abcdef0u, 4711, 12};
    JobAddress back;
    ASSERT_TRUE(parse_address(to_string(address).c_str(), back));
    EXPECT_EQ(back, address);
}

TEST(Address, RefusesMalformedAddresses) {
    JobAddress out;
    for (const char* text : {"", "1", "1:2", "1:2:", ":2:a", "1::a", "0:2:a", "1:2:0", "-1:2:a", "1:-2:a", " 1:2:a", "1:2:a ",
                             "1:2:g", "1:2:A", "1:2:0x1", "99999999999:2:a", "1:2:11111111111111111", "1:2:a:b", "+1:2:a"}) {
        EXPECT_FALSE(parse_address(text, out)) << text;
    }
}

class IdentityTest : public ::testing::Test {
  protected:
    void TearDown() override {
        unsetenv(kJobVariable);
        unsetenv(kRankVariable);
    }
};

TEST_F(IdentityTest, WithoutVariablesItIsASingleton) {
    ProcessIdentity identity;
    EXPECT_EQ(read_identity(identity), MPI_SUCCESS);
    EXPECT_FALSE(identity.launched);
}

TEST_F(IdentityTest, ReadsBothVariables) {
    setenv(kJobVariable, "10:3:ab", 1);
    setenv(kRankVariable, "5", 1);
    ProcessIdentity identity;
    ASSERT_EQ(read_identity(identity), MPI_SUCCESS);
    EXPECT_TRUE(identity.launched);
    EXPECT_EQ(identity.rank, 5u);
    EXPECT_EQ(identity.job.id, 0xabu);
}

TEST_F(IdentityTest, RefusesMissingAndMalformedVariables) {
    ProcessIdentity identity;
    setenv(kJobVariable, "10:3:ab", 1);
    EXPECT_EQ(read_identity(identity), MPI_ERR_OTHER);
    setenv(kRankVariable, "5x", 1);
    EXPECT_EQ(read_identity(identity), MPI_ERR_OTHER);
    setenv(kRankVariable, "-1", 1);
    EXPECT_EQ(read_identity(identity), MPI_ERR_OTHER);
    setenv(kRankVariable, "1", 1);
    setenv(kJobVariable, "nonsense", 1);
    EXPECT_EQ(read_identity(identity), MPI_ERR_OTHER);
    EXPECT_NE(failure_text().find("nonsense"), std::string_view::npos);
}

TEST(Segment, HasTheContentsItWasCreatedWith) {
    JobSegment segment;
    const std::string blob = "parents";
    ASSERT_EQ(JobSegment::create(5, blob.data(), blob.size(), segment), MPI_SUCCESS);
    const JobHeader& header = segment.header();
    EXPECT_EQ(header.size, 5u);
    EXPECT_NE(header.id, 0u);
    EXPECT_EQ(header.owner_pid, getpid());
    EXPECT_EQ(header.owner_fd, segment.fd());
    EXPECT_EQ(header.state.load(), JobState::running);
    EXPECT_EQ(header.failed_rank.load(), -1);
    EXPECT_EQ(header.next_context.load(), 16u);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(segment.blob()), header.blob_size), blob);
    for (uint32_t rank = 0; rank < 5; ++rank) {
        EXPECT_EQ(segment.cell(rank).state.load(), RankState::started);
        EXPECT_EQ(segment.cell(rank).cpu, kNotBound);
        EXPECT_EQ(reinterpret_cast<uintptr_t>(segment.region(rank)) % 4096, 0u);
    }
    EXPECT_EQ(fcntl(segment.fd(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    EXPECT_TRUE(job_alive(segment));
}

TEST(Segment, TwoSegmentsNeverShareIdAndSecret) {
    JobSegment a, b;
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, a), MPI_SUCCESS);
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, b), MPI_SUCCESS);
    EXPECT_NE(a.header().id, b.header().id);
    EXPECT_FALSE(a.header().secret[0] == b.header().secret[0] && a.header().secret[1] == b.header().secret[1]);
}

TEST(Segment, IsSparse) {
    JobSegment segment;
    ASSERT_EQ(JobSegment::create(256, nullptr, 0, segment), MPI_SUCCESS);
    struct stat status;
    ASSERT_EQ(fstat(segment.fd(), &status), 0);
    EXPECT_GE(status.st_size, int64_t{256} * static_cast<int64_t>(kRegionStride));
    EXPECT_LT(status.st_blocks * 512, 256 * 1024);
}

TEST(Segment, AnotherMappingSharesItsMemory) {
    JobSegment created, opened;
    ASSERT_EQ(JobSegment::create(2, nullptr, 0, created), MPI_SUCCESS);
    ASSERT_EQ(JobSegment::open(created.address(), opened), MPI_SUCCESS);
    EXPECT_EQ(opened.fd(), -1);
    created.cell(1).abort_code.store(42);
    EXPECT_EQ(opened.cell(1).abort_code.load(), 42);
    *opened.region(1) = std::byte{7};
    EXPECT_EQ(*created.region(1), std::byte{7});
    created.header().state.store(JobState::failed);
    EXPECT_FALSE(job_alive(opened));
}

TEST(Segment, CannotBeTruncatedWhileMapped) {
    JobSegment segment;
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, segment), MPI_SUCCESS);
    EXPECT_NE(ftruncate(segment.fd(), 0), 0);
}

TEST(Segment, RefusesAnotherJob) {
    JobSegment created, opened;
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, created), MPI_SUCCESS);
    JobAddress wrong = created.address();
    ++wrong.id;
    EXPECT_EQ(JobSegment::open(wrong, opened), MPI_ERR_PROC_ABORTED);
    EXPECT_FALSE(opened);
}

TEST(Segment, RefusesAnotherVersion) {
    JobSegment created, opened;
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, created), MPI_SUCCESS);
    created.header().version = wire_version() + 1;  // the version that a newer library writes
    EXPECT_EQ(JobSegment::open(created.address(), opened), MPI_SUCCESS);
    created.header().version = wire_version() + (1 << 16);
    std::strcpy(created.header().release, "9.8.7");
    EXPECT_EQ(JobSegment::open(created.address(), opened), MPI_ERR_PROC_ABORTED);
    EXPECT_NE(failure_text().find("9.8.7 (wire "), std::string_view::npos);
    EXPECT_NE(failure_text().find(version_text()), std::string_view::npos);
}

TEST(Segment, RefusesAHeaderWithOffsetsOutside) {
    JobSegment created, opened;
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, created), MPI_SUCCESS);
    JobHeader& header = created.header();
    const uint64_t good = header.regions_offset;
    for (const uint64_t bad : {uint64_t{0} - 4096, uint64_t{1} << 40, good + 4096, good + 1}) {
        header.regions_offset = bad;
        EXPECT_EQ(JobSegment::open(created.address(), opened), MPI_ERR_PROC_ABORTED) << bad;
    }
    header.regions_offset = good;
    header.size = UINT32_MAX;
    EXPECT_EQ(JobSegment::open(created.address(), opened), MPI_ERR_PROC_ABORTED);
    header.size = 1;
    header.region_stride = UINT64_MAX - 4095;
    EXPECT_EQ(JobSegment::open(created.address(), opened), MPI_ERR_PROC_ABORTED);
}

TEST(Segment, RefusesOtherFiles) {
    JobSegment opened;
    const int memory = memfd_create("other", MFD_CLOEXEC);
    EXPECT_EQ(JobSegment::open({1, getpid(), memory}, opened), MPI_ERR_PROC_ABORTED);
    ASSERT_EQ(ftruncate(memory, 1 << 20), 0);
    EXPECT_EQ(JobSegment::open({1, getpid(), memory}, opened), MPI_ERR_PROC_ABORTED);
    close(memory);
    EXPECT_EQ(JobSegment::open({1, getpid(), memory}, opened), MPI_ERR_PROC_ABORTED);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(JobSegment::open({1, getpid(), ends[0]}, opened), MPI_ERR_PROC_ABORTED);
    close(ends[0]);
    close(ends[1]);
}

TEST(Segment, TheOwnersDeathIsDetectedEvenAsAZombie) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const pid_t owner = fork();
    if (owner == 0) {
        JobSegment segment;
        if (JobSegment::create(1, nullptr, 0, segment)) _exit(1);
        const JobAddress address = segment.address();
        if (write(ends[1], &address, sizeof address) != sizeof address) _exit(1);
        pause();
        _exit(0);
    }
    JobAddress address;
    ASSERT_EQ(read(ends[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
    JobSegment opened;
    ASSERT_EQ(JobSegment::open(address, opened), MPI_SUCCESS);
    EXPECT_TRUE(job_alive(opened));
    kill(owner, SIGKILL);
    siginfo_t info;
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(owner), &info, WEXITED | WNOWAIT), 0);
    EXPECT_FALSE(job_alive(opened));
    waitpid(owner, nullptr, 0);
    EXPECT_EQ(opened.header().size, 1u);  // memory that was mapped before the owner's death stays readable
    close(ends[0]);
    close(ends[1]);
}

TEST(Segment, WithoutDescriptorsTheErrorNamesTheRemedy) {
    rlimit before;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{3, before.rlim_max};
    JobSegment segment;
    setrlimit(RLIMIT_NOFILE, &none);
    const int result = JobSegment::create(1, nullptr, 0, segment);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(result, MPI_ERR_OTHER);
    EXPECT_NE(failure_text().find("ulimit -n"), std::string_view::npos);
}

/// Runs in a separate process with a seccomp filter that refuses memfd_create. Prints the error and exits with 1.
[[noreturn]] void create_behind_filter() {
    sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog filter{static_cast<unsigned short>(std::size(rules)), rules};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) _exit(2);
    JobSegment segment;
    const int result = JobSegment::create(1, nullptr, 0, segment);
    fprintf(stderr, "%.*s\n", static_cast<int>(failure_text().size()), failure_text().data());
    _exit(result == MPI_ERR_OTHER ? 1 : 0);
}

TEST(Segment, ASeccompFilterIsNotReportedAsLackOfMemory) {
    EXPECT_EXIT(create_behind_filter(), testing::ExitedWithCode(1), "memfd_create is refused .*seccomp");
}

/// Runs in a separate process whose /proc is an empty directory. Prints the error and exits with 1.
[[noreturn]] void open_without_proc(const JobAddress& address) {
    JobSegment segment;
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("none", "/proc", "tmpfs", 0, nullptr) != 0)
        _exit(2);
    const int result = JobSegment::open(address, segment);
    fprintf(stderr, "%.*s\n", static_cast<int>(failure_text().size()), failure_text().data());
    _exit(result == MPI_ERR_OTHER ? 1 : 0);
}

TEST(Segment, AMissingProcIsNotReportedAsAnEndedJob) {
    if (geteuid() != 0) GTEST_SKIP() << "needs root, to hide /proc";
    JobSegment segment;
    ASSERT_EQ(JobSegment::create(1, nullptr, 0, segment), MPI_SUCCESS);
    const JobAddress address = segment.address();
    EXPECT_EXIT(open_without_proc(address), testing::ExitedWithCode(1), "/proc is not mounted.*mount it");
}

TEST(Doorbell, RingsOnlySleepers) {
    Doorbell doorbell{};
    ring(doorbell);
    EXPECT_EQ(doorbell.rings.load(), 0u);
    doorbell.sleeping.store(1);
    ring(doorbell);
    EXPECT_EQ(doorbell.rings.load(), 1u);
}

}  // namespace
}  // namespace starling::job
