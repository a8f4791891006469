// Registrations (transport/verbs/registrations.h) against a device that holds the registered pages, as a real one does: it puts them into a
// pipe, which keeps them even if the program maps other pages at their addresses. A cache that trusts addresses fails most of these tests.
#include "transport/verbs/registrations.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "verbs_queues.h"

namespace starling::verbs {
namespace {

constexpr uint64_t kPage = 4096, kBytes = 64 * kPage;

/// A device that holds registered pages.
class Device final : public queues::FabricPort {
  public:
    explicit Device(queues::Fabric& fabric) : FabricPort(fabric, 1) {}
    ~Device() {
        for (auto& [key, ends] : pages_) ::close(ends[0]), ::close(ends[1]);
    }
    bool enroll(void* memory, uint64_t bytes, bool remote, Memory& out) override {
        if (!FabricPort::enroll(memory, bytes, remote, out)) return false;
        // Write to each page, because the device may write there. Otherwise it would hold the zero page that all unwritten mappings share.
        for (uint64_t at = 0; at < bytes; at += kPage) {
            volatile char& byte = static_cast<char*>(memory)[at];
            byte = byte;
        }
        auto& ends = pages_[out.local];
        EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
        EXPECT_GE(fcntl(ends[1], F_SETPIPE_SZ, bytes), static_cast<int>(bytes)) << strerror(errno);
        const iovec all{memory, bytes};
        EXPECT_EQ(vmsplice(ends[1], &all, 1, 0), static_cast<ssize_t>(bytes)) << strerror(errno);
        return true;
    }
    void dismiss(Memory& memory) override {
        FabricPort::dismiss(memory);
        for (const int end : pages_.at(memory.local)) ::close(end);
        pages_.erase(memory.local);
    }
    /// Returns the first page's text, from the offset on, as the device sees it.
    std::string read(const Memory& memory, uint64_t offset = 0) {
        int copy[2];
        EXPECT_EQ(pipe2(copy, O_CLOEXEC), 0);
        char page[kPage] = {};
        EXPECT_EQ(tee(pages_.at(memory.local)[0], copy[1], kPage, 0), static_cast<ssize_t>(kPage)) << strerror(errno);
        EXPECT_EQ(::read(copy[0], page, kPage), static_cast<ssize_t>(kPage));
        ::close(copy[0]), ::close(copy[1]);
        return page + offset;
    }

  private:
    std::map<uint32_t, std::array<int, 2>> pages_;
};

char* map(void* where = nullptr, uint64_t bytes = kBytes) {
    const int fixed = where ? MAP_FIXED_NOREPLACE : 0;
    void* const memory = mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | fixed, -1, 0);
    EXPECT_NE(memory, MAP_FAILED);
    return static_cast<char*>(memory);
}

class RegistrationsTest : public testing::Test {
  protected:
    void SetUp() override {
        watch = MemoryWatch::start();
        if (!watch) GTEST_SKIP() << failure_text() << ": memory can't be watched here";
        cache = std::make_unique<Registrations>(device, watch.get(), 64 * kBytes);
    }
    /// Writes a text to `from` and returns the text that a message from that memory carries to the receiver.
    std::string send(const char* text, char* from) {
        std::strcpy(from, text);
        return send(from);
    }
    std::string send(char* from) {
        Registration* const one = cache->use(from, kBytes);
        EXPECT_NE(one, nullptr);
        const std::string seen = device.read(one->memory, reinterpret_cast<uint64_t>(from) - one->pages.begin);
        cache->done(*one);
        return seen;
    }
    queues::Fabric fabric;
    Device device{fabric};
    std::unique_ptr<MemoryWatch> watch;
    std::unique_ptr<Registrations> cache;
};

TEST_F(RegistrationsTest, TheSameMemoryIsRegisteredOnce) {
    char* const memory = map();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(send(std::to_string(i).c_str(), memory), std::to_string(i));
    EXPECT_EQ(cache->counters().made, 1u);
    EXPECT_EQ(cache->counters().found, 4u);
    Registration* const part = cache->use(memory + 100, kPage);
    EXPECT_EQ(cache->counters().made, 1u);
    cache->done(*part);
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, MemoryUnmappedAndMappedAgainIsRegisteredAnew) {
    char* const memory = map();
    ASSERT_EQ(send("before", memory), "before");
    munmap(memory, kBytes);
    ASSERT_EQ(map(memory), memory);
    EXPECT_EQ(send("after", memory), "after");
    EXPECT_EQ(cache->counters().made, 2u);
    munmap(memory, kBytes);
}

// Without this property of the device the other tests would prove nothing.
TEST_F(RegistrationsTest, TheDeviceKeepsTheRegisteredPages) {
    char* const memory = map();
    Registration* const stale = cache->use(memory, kBytes);
    std::strcpy(memory, "before");
    EXPECT_EQ(device.read(stale->memory), "before");
    munmap(memory, kBytes);
    ASSERT_EQ(map(memory), memory);
    std::strcpy(memory, "after");
    EXPECT_EQ(device.read(stale->memory), "before");
    EXPECT_EQ(send(memory), "after");  // the new contents, although the stale registration is still in use
    cache->done(*stale);
    EXPECT_EQ(send("later", memory), "later");
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, AReplacedMappingIsRegisteredAnew) {
    char* const memory = map();
    ASSERT_EQ(send("before", memory), "before");
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    ASSERT_EQ(mmap(memory, kBytes, PROT_READ | PROT_WRITE, flags, -1, 0), memory);
    EXPECT_EQ(send("after", memory), "after");
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, APartlyUnmappedRangeIsRegisteredAnew) {
    char* const memory = map();
    ASSERT_EQ(send("before", memory), "before");
    munmap(memory, kPage);
    ASSERT_EQ(map(memory, kPage), memory);
    EXPECT_EQ(send("after", memory), "after");
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, PagesReturnedToTheKernelAreRegisteredAnew) {
    char* const memory = map();
    for (const int advice : {MADV_DONTNEED, MADV_FREE}) {
        ASSERT_EQ(send("before", memory), "before");
        ASSERT_EQ(madvise(memory, kBytes, advice), 0);
        EXPECT_EQ(send("after", memory), "after");
    }
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, RemappedMemoryIsRegisteredAnew) {
    char* const memory = map();
    char* const other = map();
    ASSERT_EQ(send("one", memory), "one");
    ASSERT_EQ(send("two", other), "two");
    ASSERT_EQ(mremap(memory, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, other), other);
    EXPECT_EQ(send(other), "one");
    ASSERT_EQ(map(memory), memory);
    EXPECT_EQ(send("three", memory), "three");
    EXPECT_EQ(send("four", other), "four");
    munmap(memory, kBytes);
    munmap(other, kBytes);
}

TEST_F(RegistrationsTest, AnAllocatorThatReusesAddresses) {
    for (int i = 0; i < 50; ++i) {
        char* const memory = static_cast<char*>(std::malloc(kBytes));
        EXPECT_EQ(send(std::to_string(i).c_str(), memory), std::to_string(i));
        std::free(memory);  // free() unmaps a block of this size at once
    }
}

TEST_F(RegistrationsTest, AChildsUnmapDoesNotAffectTheParent) {
    char* const memory = map();
    ASSERT_EQ(send("before", memory), "before");
    const pid_t child = fork();
    if (child == 0) {
        munmap(memory, kBytes);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(cache->counters().changed, 0u);
    munmap(memory, kBytes);
    ASSERT_EQ(map(memory), memory);
    EXPECT_EQ(send("after", memory), "after");
    EXPECT_EQ(cache->counters().changed, 1u);
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, MemoryRemappedByOtherThreadsIsRegisteredAnew) {
    char* const memory = map();
    std::atomic<int> turn = 0;
    constexpr int kTurns = 300;
    std::thread other([&] {
        for (int i = 0; i < kTurns; ++i) {
            while (turn.load() != 2 * i) sched_yield();
            munmap(memory, kBytes);
            map(memory);
            std::strcpy(memory, std::to_string(i).c_str());
            turn.store(2 * i + 1);
        }
    });
    for (int i = 0; i < kTurns; ++i) {
        while (turn.load() != 2 * i + 1) sched_yield();
        EXPECT_EQ(send(memory), std::to_string(i));
        turn.store(2 * i + 2);
    }
    other.join();
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, AFloodOfChangesDoesNotKeepCallersWaiting) {
    std::atomic<bool> end = false;
    std::vector<std::thread> threads;
    for (int i = 0; i < 64; ++i) {
        char* const memory = map(nullptr, kPage);
        const auto begin = reinterpret_cast<uint64_t>(memory);
        EXPECT_TRUE(watch->watch({begin, begin + kPage}));
        threads.emplace_back([&end, memory] {
            while (!end.load()) madvise(memory, kPage, MADV_DONTNEED);
            munmap(memory, kPage);
        });
    }
    PageRange changed[MemoryWatch::kMost];
    bool settled;
    // The time of this process's threads: one that waits for a core, which other processes have, waits for nobody here.
    const auto used_ns = [] {
        timespec used{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
    };
    uint64_t longest = 0;
    for (int i = 0; i < 200; ++i) {
        const uint64_t begin = used_ns();
        watch->take(changed, settled);
        longest = std::max(longest, used_ns() - begin);
    }
    end = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_LT(longest, 1'000'000'000u);
}

TEST_F(RegistrationsTest, TooManyChangesDropAllRegistrations) {
    std::vector<char*> all;
    for (int i = 0; i < 2 * MemoryWatch::kMost; ++i) {
        all.push_back(map(nullptr, 2 * kPage));
        Registration* const one = cache->use(all.back(), 2 * kPage);
        cache->done(*one);
    }
    char* const untouched = map();
    ASSERT_EQ(send("untouched", untouched), "untouched");
    for (char* one : all) munmap(one, 2 * kPage);
    EXPECT_EQ(send("still", untouched), "still");
    EXPECT_EQ(cache->bytes(), kBytes);
    munmap(untouched, kBytes);
}

TEST_F(RegistrationsTest, FilesAndSharedMemoryAreNotCached) {
    void* const shared = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    const int fd = memfd_create("test", MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, kBytes), 0);
    void* const file = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    for (void* memory : {shared, file}) {
        EXPECT_EQ(send("one", static_cast<char*>(memory)), "one");
        EXPECT_EQ(send("two", static_cast<char*>(memory)), "two");
    }
    EXPECT_EQ(cache->counters().found, 0u);
    EXPECT_EQ(cache->bytes(), 0u);
    munmap(shared, kBytes), munmap(file, kBytes), close(fd);
}

TEST_F(RegistrationsTest, TheLeastRecentlyUsedRegistrationIsEvicted) {
    cache = std::make_unique<Registrations>(device, watch.get(), 3 * kBytes);
    char* memory[4];
    for (char*& one : memory) one = map();
    for (const int i : {0, 1, 2, 0, 3}) send(memory[i]);
    EXPECT_EQ(cache->counters().evicted, 1u);
    EXPECT_LE(device.registered, 3 * kBytes);
    send(memory[0]), send(memory[2]), send(memory[3]);
    EXPECT_EQ(cache->counters().made, 4u);
    send(memory[1]);
    EXPECT_EQ(cache->counters().made, 5u);
    for (char* one : memory) munmap(one, kBytes);
}

TEST_F(RegistrationsTest, ALowerSystemLimitIsRespected) {
    device.most_registered = 2 * kBytes;
    char* const memory = map(nullptr, 4 * kBytes);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(send("x", memory + static_cast<uint64_t>(i) * kBytes), "x");
    EXPECT_EQ(cache->counters().evicted, 2u);
    Registration* const one = cache->use(memory, kBytes);
    Registration* const two = cache->use(memory + kBytes, kBytes);
    EXPECT_EQ(cache->use(memory + 2 * kBytes, kBytes), nullptr);
    cache->done(*one), cache->done(*two);
    munmap(memory, 4 * kBytes);
}

TEST_F(RegistrationsTest, UsedRegistrationsStayAndStaleOnesAreReleased) {
    char* const memory = map();
    Registration* const one = cache->use(memory, kBytes);
    Registration* const two = cache->use(memory, kBytes);
    EXPECT_EQ(one, two);
    cache->done(*two);
    EXPECT_EQ(device.memories.size(), 1u);
    cache->spoil(*one);
    EXPECT_EQ(device.memories.size(), 0u);
    EXPECT_EQ(cache->bytes(), 0u);
    Registration* const three = cache->use(memory, kBytes);
    EXPECT_NE(three, one);
    cache->done(*one);
    EXPECT_EQ(device.read(three->memory), send(memory));
    cache->done(*three);
    munmap(memory, kBytes);
}

TEST_F(RegistrationsTest, WithoutAnUnmapWatchNothingIsCached) {
    Registrations forgetful(device, nullptr, 64 * kBytes);
    char* const memory = map();
    for (int i = 0; i < 3; ++i) {
        Registration* const one = forgetful.use(memory, kBytes);
        ASSERT_NE(one, nullptr);
        forgetful.done(*one);
        EXPECT_EQ(forgetful.bytes(), 0u);
    }
    Registration* const held = forgetful.hold(memory, kBytes);
    EXPECT_EQ(forgetful.bytes(), kBytes);
    forgetful.done(*held);
    EXPECT_EQ(forgetful.bytes(), 0u);
    munmap(memory, kBytes);
}

}  // namespace
}  // namespace starling::verbs
