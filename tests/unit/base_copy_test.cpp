#include "base/copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "base/copy_in.h"
#include "base/long_copy.h"

namespace starling {
namespace {

/// Tries every alignment of both sides, with lengths around multiples of a cache line: the target becomes a copy, and no other byte
/// changes.
template <class Copy>
void expect_copies(std::vector<size_t> lengths, size_t to_step, Copy copy) {
    std::mt19937_64 random(7);
    std::vector<std::byte> from(5000);
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    for (size_t length : lengths)
        for (size_t to_offset = 0; to_offset < 65; to_offset += to_step) {
            const size_t from_offset = random() % 65;
            alignas(64) std::byte target[5000];
            std::fill(std::begin(target), std::end(target), std::byte{0xA5});
            copy(target + to_offset, from.data() + from_offset, length);
            ASSERT_TRUE(
                std::equal(target + to_offset, target + to_offset + length, from.begin() + static_cast<long>(from_offset)))
                << length << " bytes to offset " << to_offset;
            const auto untouched = [](std::byte b) { return b == std::byte{0xA5}; };
            ASSERT_TRUE(std::all_of(target + 0, target + to_offset, untouched));
            ASSERT_TRUE(std::all_of(target + to_offset + length, std::end(target), untouched));
        }
}

TEST(Copy, ShortCopies) {
    std::vector<size_t> lengths;
    for (size_t length = 0; length <= 32; ++length) lengths.push_back(length);
    expect_copies(lengths, 1, copy_few);
}

TEST(Copy, LongCopiesInParts) {
    std::mt19937_64 random(7);
    std::vector<std::byte> from(3 * kLongCopyPart);
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    for (const size_t length : {size_t{0}, size_t{100}, kLongCopyPart - 1, kLongCopyPart, kLongCopyPart + 1, 2 * kLongCopyPart,
                                3 * kLongCopyPart - 7}) {
        std::vector<std::byte> target(from.size() + 2, std::byte{0xA5});
        copy_long(target.data() + 1, from.data(), length);
        ASSERT_TRUE(std::equal(from.begin(), from.begin() + static_cast<long>(length), target.begin() + 1)) << length;
        ASSERT_EQ(target[0], std::byte{0xA5});
        ASSERT_EQ(target[length + 1], std::byte{0xA5}) << length;
    }
}

TEST(Copy, StreamingStoresPastTheCaches) {
    expect_copies({0, 1, 15, 16, 63, 64, 65, 127, 1000, 4096, 4097}, 16, copy_past_caches);
}

TEST(Copy, CopiesOutOfSharedMemory) { expect_copies({0, 1, 2047, 2048, 2049, 2111, 2112, 2303, 2304, 4096, 4097}, 1, copy_in); }

// CopyPath chooses the instructions itself; every choice must copy correctly.
TEST(Copy, CopyPathCopiesCorrectlyWhateverItChooses) {
    CopyPath path;
    for (int i = 0; i < 20; ++i)
        for (const auto into :
             {CopyPath::CopyDestination::again, CopyPath::CopyDestination::streamed, CopyPath::CopyDestination::rotation})
            expect_copies({0, 1, 2047, 2048, 2049, 4096, 4097}, 1,
                          [&](void* to, const void* from, size_t bytes) { path.copy(to, from, bytes, into); });
}

// A timed copy first writes zeros to two of the words that it will overwrite. The source shows them if it is the same memory, at another
// address.
TEST(Copy, CopiesToCloseCoresAreSeldomTimed) {
    constexpr size_t kBytes = 4096;
    const int fd = memfd_create("copy", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, kBytes), 0);
    void* const to = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void* const from = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_TRUE(to != MAP_FAILED && from != MAP_FAILED);
    const auto count_timed = [&](CopyPath& path, int copies) {
        int timed = 0;
        for (int i = 0; i < copies; ++i) {
            std::memset(from, 1, kBytes);
            path.copy(to, from, kBytes, CopyPath::CopyDestination::again);
            timed += static_cast<const char*>(to)[64] == 0;
        }
        return timed;
    };
    CopyPath path;
    count_timed(path, 100);  // this core's own caches are close, unless something disturbs the measurements
    for (int turns = 0; turns < 1000 && path.reach() == CopyPath::CacheDistance::close; ++turns) {
        const int timed = count_timed(path, 128);
        if (path.reach() != CopyPath::CacheDistance::close) continue;
        EXPECT_GT(timed, 0);
        EXPECT_LT(timed, 64);
    }
    munmap(to, kBytes);
    munmap(from, kBytes);
    close(fd);
}

}  // namespace
}  // namespace starling
