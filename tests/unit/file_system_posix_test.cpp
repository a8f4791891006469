// The posix driver: transfers of many pieces, sizes, space, locks, and the files that it refuses to open.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/clock.h"
#include "file/system/open_file.h"
#include "file/system/preallocate.h"
#include "file/system/transfer_loop.h"
#include "temporary_folder.h"

using namespace starling;
using namespace starling::file;

namespace {

OpenParams params_for(const std::string& path) {
    OpenParams params;
    params.path = path;
    params.read = params.write = params.create = true;
    return params;
}

std::unique_ptr<OpenFile> open_new(const std::string& path) {
    std::unique_ptr<OpenFile> file;
    EXPECT_EQ(open_file(params_for(path), file), 0);
    return file;
}

int64_t size_of(OpenFile& file) {
    int64_t bytes = -1;
    EXPECT_EQ(file.size(bytes), 0);
    return bytes;
}

Moved write_text(OpenFile& file, int64_t offset, const std::string& text) {
    const iovec piece{const_cast<char*>(text.data()), text.size()};
    return file.write(offset, &piece, 1);
}

std::string read_text(OpenFile& file, int64_t offset, size_t bytes) {
    std::string text(bytes, '?');
    const iovec piece{text.data(), text.size()};
    const Moved moved = file.read(offset, &piece, 1);
    EXPECT_EQ(moved.system_error, 0);
    return text.substr(0, static_cast<size_t>(moved.bytes));
}

class PosixDriver : public ::testing::Test {
  protected:
    TemporaryFolder folder_;
};

TEST_F(PosixDriver, MorePiecesThanIovMaxArriveInOrder) {
    auto file = open_new(folder_.path("a"));
    std::vector<int> values(3 * IOV_MAX + 7), back(values.size(), -1);
    std::iota(values.begin(), values.end(), 0);
    std::vector<iovec> out, in;
    for (size_t i = 0; i < values.size(); ++i) {
        out.push_back({&values[i], sizeof(int)});
        in.push_back({&back[back.size() - 1 - i], sizeof(int)});
        if (i % 5 == 0) out.push_back({nullptr, 0}), in.push_back({nullptr, 0});
    }
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(int));
    EXPECT_EQ(file->write(100, out.data(), static_cast<int>(out.size())).bytes, bytes);
    EXPECT_EQ(size_of(*file), 100 + bytes);
    EXPECT_EQ(file->read(100, in.data(), static_cast<int>(in.size())).bytes, bytes);
    EXPECT_TRUE(std::equal(values.rbegin(), values.rend(), back.begin()));
}

TEST_F(PosixDriver, ReadStopsAtTheEndWithoutError) {
    auto file = open_new(folder_.path("a"));
    EXPECT_EQ(write_text(*file, 0, "hello").bytes, 5);
    EXPECT_EQ(read_text(*file, 2, 100), "llo");
    EXPECT_EQ(read_text(*file, 5, 100), "");
    EXPECT_EQ(read_text(*file, 1000, 100), "");
}

TEST_F(PosixDriver, IdentifiesTheOpenFileAfterARename) {
    auto file = open_new(folder_.path("a"));
    uint64_t device = 0, inode = 0, later_device = 0, later_inode = 0, other_inode = 0;
    EXPECT_EQ(file->identify(device, inode), 0);
    auto other = open_new(folder_.path("b"));
    ASSERT_EQ(::rename(folder_.path("b").c_str(), folder_.path("a").c_str()), 0);
    EXPECT_EQ(file->identify(later_device, later_inode), 0);
    EXPECT_EQ(other->identify(device, other_inode), 0);
    EXPECT_EQ(later_device, device);
    EXPECT_EQ(later_inode, inode);
    EXPECT_NE(other_inode, inode);
}

TEST_F(PosixDriver, HoleIsReadAsZeros) {
    auto file = open_new(folder_.path("a"));
    write_text(*file, 3, "x");
    EXPECT_EQ(read_text(*file, 0, 10), std::string("\0\0\0x", 4));
}

/// Moves the bytes of a list of pieces through a stand-in for pwritev that moves `most` bytes at most, and is interrupted in between.
std::string move_in_steps(const std::vector<std::string>& texts, size_t most) {
    std::string file;
    std::vector<iovec> pieces;
    for (const std::string& text : texts) pieces.push_back({const_cast<char*>(text.data()), text.size()});
    bool interrupted = false;
    const Moved moved = move_all(7, pieces.data(), static_cast<int>(pieces.size()), true,
                                 [&](int64_t at, const iovec* some, int count) -> ssize_t {
                                     EXPECT_EQ(at, 7 + static_cast<int64_t>(file.size()));
                                     interrupted = !interrupted;
                                     if (interrupted) return errno = EINTR, -1;
                                     size_t left = most;
                                     for (int i = 0; i < count; ++i) {
                                         const size_t part = std::min(left, some[i].iov_len);
                                         file.append(static_cast<const char*>(some[i].iov_base), part);
                                         left -= part;
                                     }
                                     return static_cast<ssize_t>(most - left);
                                 });
    EXPECT_EQ(moved.system_error, 0);
    EXPECT_EQ(moved.bytes, static_cast<int64_t>(file.size()));
    return file;
}

TEST(TransferLoop, ShortAndInterruptedTransfersAreRepeated) {
    const std::vector<std::string> texts{"", "a", "bcd", "", "efghijk", "l", ""};
    for (size_t most = 1; most <= 14; ++most) EXPECT_EQ(move_in_steps(texts, most), "abcdefghijkl") << most;
}

TEST(TransferLoop, WriteWithoutProgressIsAnError) {
    char byte = 0;
    const iovec piece{&byte, 1};
    const Moved moved = move_all(0, &piece, 1, true, [](int64_t, const iovec*, int) -> ssize_t { return 0; });
    EXPECT_EQ(moved.system_error, EIO);
    EXPECT_EQ(moved.bytes, 0);
}

TEST(TransferLoop, BytesBeforeAnErrorAreCounted) {
    char bytes[10] = {};
    const iovec pieces[2] = {{bytes, 5}, {bytes + 5, 5}};
    int calls = 0;
    const Moved moved = move_all(
        0, pieces, 2, true, [&](int64_t, const iovec*, int) -> ssize_t { return calls++ == 0 ? 7 : (errno = ENOSPC, -1); });
    EXPECT_EQ(moved.system_error, ENOSPC);
    EXPECT_EQ(moved.bytes, 7);
}

TEST_F(PosixDriver, ResizeShortensAndLengthens) {
    auto file = open_new(folder_.path("a"));
    write_text(*file, 0, "hello");
    EXPECT_EQ(file->resize(2), 0);
    EXPECT_EQ(file->resize(4), 0);
    EXPECT_EQ(read_text(*file, 0, 10), std::string("he\0\0", 4));
}

TEST_F(PosixDriver, PreallocateNeverShortens) {
    auto file = open_new(folder_.path("a"));
    write_text(*file, 0, "hello");
    EXPECT_EQ(file->preallocate(3), 0);
    EXPECT_EQ(size_of(*file), 5);
    EXPECT_EQ(file->preallocate(70000), 0);
    EXPECT_EQ(size_of(*file), 70000);
    EXPECT_EQ(read_text(*file, 0, 5), "hello");
    struct stat status;
    ASSERT_EQ(::stat(folder_.path("a").c_str(), &status), 0);
    EXPECT_GE(status.st_blocks * 512, 70000);
}

TEST_F(PosixDriver, PreallocateWithoutFallocateFillsHolesAndKeepsData) {
    auto file = open_new(folder_.path("a"));
    constexpr int64_t kFar = 3 << 20;
    write_text(*file, kFar, "data");
    const int descriptor = ::open(folder_.path("a").c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_EQ(fill_with_zeros(descriptor, kFar + 2), 0);
    EXPECT_EQ(size_of(*file), kFar + 4);
    EXPECT_EQ(read_text(*file, kFar, 10), "data");
    ASSERT_EQ(fill_with_zeros(descriptor, 2 * kFar), 0);
    EXPECT_EQ(size_of(*file), 2 * kFar);
    EXPECT_EQ(read_text(*file, kFar, 6), std::string("data\0\0", 6));
    struct stat status;
    ASSERT_EQ(::fstat(descriptor, &status), 0);
    EXPECT_GE(status.st_blocks * 512, 2 * kFar);
    ::close(descriptor);
}

TEST_F(PosixDriver, DescriptorIsClosedOnExec) {
    auto file = open_new(folder_.path("a"));
    const std::string name = folder_.path("a");
    for (int descriptor = 3; descriptor < 64; ++descriptor) {
        char target[PATH_MAX];
        const ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(descriptor)).c_str(), target, sizeof target);
        if (length > 0 && name == std::string(target, static_cast<size_t>(length))) {
            EXPECT_TRUE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC);
            EXPECT_FALSE(::fcntl(descriptor, F_GETFL) & O_NONBLOCK);
            return;
        }
    }
    FAIL() << "the file's descriptor was not found";
}

TEST_F(PosixDriver, ExclusiveCreationFailsIfTheFileExists) {
    OpenParams params = params_for(folder_.path("a"));
    params.exclusive = true;
    std::unique_ptr<OpenFile> file, again;
    EXPECT_EQ(open_file(params, file), 0);
    EXPECT_EQ(open_file(params, again), EEXIST);
    EXPECT_EQ(again, nullptr);
}

TEST_F(PosixDriver, OpenWithoutCreateFailsIfTheFileIsMissing) {
    OpenParams params = params_for(folder_.path("a"));
    params.create = false;
    std::unique_ptr<OpenFile> file;
    EXPECT_EQ(open_file(params, file), ENOENT);
    EXPECT_EQ(remove_file(params.path), ENOENT);
}

TEST_F(PosixDriver, FolderFifoAndLongNameAreRefusedAtOnce) {
    OpenParams params = params_for(folder_.path("fifo"));
    std::unique_ptr<OpenFile> file;
    ASSERT_EQ(::mkfifo(params.path.c_str(), 0600), 0);
    EXPECT_EQ(open_file(params, file), ESPIPE);
    params.read = false;
    EXPECT_EQ(open_file(params, file), ESPIPE);
    params.read = true, params.write = params.create = false;
    EXPECT_EQ(open_file(params, file), ESPIPE);
    params.path = folder_.path("");
    EXPECT_EQ(open_file(params, file), EISDIR);
    params.write = true;
    EXPECT_EQ(open_file(params, file), EISDIR);
    params.path = std::string(5000, 'x');
    EXPECT_EQ(open_file(params, file), ENAMETOOLONG);
    params.path = folder_.path(std::string(300, 'x'));
    EXPECT_EQ(open_file(params, file), ENAMETOOLONG);
}

TEST_F(PosixDriver, UnknownDriverIsNotSupported) {
    OpenParams params = params_for(folder_.path("a"));
    params.driver = "floppy";
    std::unique_ptr<OpenFile> file;
    EXPECT_EQ(open_file(params, file), ENOTSUP);
}

TEST_F(PosixDriver, LockExcludesAnotherOpenFileForAtMostATenthOfASecond) {
    auto file = open_new(folder_.path("a")), other = open_new(folder_.path("a"));
    EXPECT_EQ(file->lock({10, 10}, true), 0);
    EXPECT_EQ(other->lock({20, 10}, true), 0);
    EXPECT_EQ(other->lock({0, 10}, false), 0);
    const uint64_t start = now_ns();
    EXPECT_EQ(other->lock({19, 1}, false), EAGAIN);
    EXPECT_GE(now_ns() - start, 90'000'000u);
    EXPECT_EQ(file->unlock({10, 10}), 0);
    EXPECT_EQ(other->lock({19, 1}, false), 0);
    EXPECT_EQ(file->lock({19, 1}, false), 0);
}

TEST_F(PosixDriver, LockOfAFileOpenForOneDirectionIsGranted) {
    auto file = open_new(folder_.path("a"));
    OpenParams params = params_for(folder_.path("a"));
    params.create = params.read = false;
    std::unique_ptr<OpenFile> writer, reader;
    ASSERT_EQ(open_file(params, writer), 0);
    std::swap(params.read, params.write);
    ASSERT_EQ(open_file(params, reader), 0);
    EXPECT_EQ(writer->lock({0, 1}, false), 0);
    EXPECT_EQ(reader->lock({5, 1}, true), 0);
}

TEST_F(PosixDriver, FileSizeLimitIsAnErrorAndKillsNobody) {
    const pid_t child = ::fork();
    if (child == 0) {
        const rlimit limit{100, 100};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        std::unique_ptr<OpenFile> file;
        if (open_file(params_for(folder_.path("a")), file) != 0) ::_exit(1);
        const Moved moved = write_text(*file, 90, std::string(50, 'x'));
        if (moved.system_error != EFBIG || moved.bytes != 10) ::_exit(2);
        if (file->resize(101) != EFBIG || file->preallocate(101) != EFBIG) ::_exit(3);
        ::_exit(file->resize(100) == 0 ? 0 : 4);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(PosixDriver, SignalsDoNotEndPreallocation) {
    struct sigaction action {
    }, before;
    action.sa_handler = [](int) {};
    ASSERT_EQ(::sigaction(SIGALRM, &action, &before), 0);
    const itimerval storm{{0, 300}, {0, 300}}, calm{};
    auto file = open_new("/dev/shm/starling-test-preallocate-" + std::to_string(::getpid()));
    ::unlink(("/dev/shm/starling-test-preallocate-" + std::to_string(::getpid())).c_str());
    ASSERT_EQ(::setitimer(ITIMER_REAL, &storm, nullptr), 0);
    EXPECT_EQ(file->preallocate(64 << 20), 0);
    EXPECT_EQ(write_text(*file, 0, std::string(64 << 20, 'x')).bytes, 64 << 20);
    ASSERT_EQ(::setitimer(ITIMER_REAL, &calm, nullptr), 0);
    ASSERT_EQ(::sigaction(SIGALRM, &before, nullptr), 0);
    EXPECT_EQ(size_of(*file), 64 << 20);
}

TEST_F(PosixDriver, LayoutUnitIsAtLeastAPage) {
    auto file = open_new(folder_.path("a"));
    EXPECT_GE(file->layout().unit, 4096);
    EXPECT_EQ(file->layout().units, 1);
}

TEST_F(PosixDriver, NullDeviceTakesWritesAndHasNoData) {
    OpenParams params = params_for("/dev/null");
    params.create = false;
    std::unique_ptr<OpenFile> file;
    ASSERT_EQ(open_file(params, file), 0);
    EXPECT_EQ(write_text(*file, 0, "hello").bytes, 5);
    EXPECT_EQ(read_text(*file, 0, 5), "");
    EXPECT_EQ(file->sync(), 0);
}

TEST_F(PosixDriver, CloseReportsOnceAndTheDestructorAcceptsIt) {
    auto file = open_new(folder_.path("a"));
    EXPECT_EQ(file->close(), 0);
    EXPECT_EQ(file->close(), EBADF);
    EXPECT_EQ(write_text(*file, 0, "x").system_error, EBADF);
}

}  // namespace
