#include "copy_bench.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <new>

namespace starling {

namespace {

using Clock = std::chrono::steady_clock;

enum class CopyWay : uint32_t { line, learn, ordinary, past_caches, kernel };

constexpr size_t kArea = 2 * kMostCopy;  // a message's place rotates, so that the reader's own caches have dropped it
constexpr size_t kFragment = 16 * 1024;
constexpr auto kPatience = std::chrono::seconds(5);
constexpr auto kBatch = std::chrono::milliseconds(2);
constexpr int kBatches = 5;
constexpr uint64_t kRoundTrips = 100;  // of a cache line, in one message

/// The memory that both processes share. Each word that one of them polls has a cache line of its own.
struct SharedCopies {
    alignas(64) std::atomic<uint64_t> request{0};  ///< number of the message that the reader asks for
    CopyWay way = CopyWay::line;                   ///< how it is copied, and its length
    uint64_t bytes = 0;
    alignas(64) std::atomic<uint64_t> written{0};  ///< bytes that the writer has written, of all messages
    alignas(64) std::atomic<uint64_t> ping{0};     ///< the cache line of CopyWay::line, on its way to the writer
    alignas(64) std::atomic<uint64_t> pong{0};     ///< and back
    alignas(64) std::atomic<uint32_t> distance{0};
    alignas(64) std::byte area[kArea];
};

/// Returns whether the data of a message goes through the shared area.
constexpr bool is_copied(CopyWay way) { return way != CopyWay::line && way != CopyWay::kernel; }

/// Polls until the condition holds. Returns false after a number of polls without it.
bool spin(auto condition, long polls) {
    for (long i = 1; !condition(); ++i) {
        if (i == polls) return false;
        if (i % 1024 == 0) sched_yield();  // another program may have the other process's core
    }
    return true;
}

/// The writer, in a process of its own, which is killed with the reader: writes each message that the reader asks for.
class CopyWriter {
  public:
    CopyWriter(SharedCopies& shared, const std::byte* source) : shared_(shared), source_(source) {}

    [[noreturn]] void run() {
        for (uint64_t message = 1;; ++message) {
            await([&] { return shared_.request.load(std::memory_order_acquire) == message; });
            if (shared_.way == CopyWay::line) return_line();
            if (is_copied(shared_.way)) write();
            shared_.distance.store(static_cast<uint32_t>(path_.reach()), std::memory_order_relaxed);
            if (!is_copied(shared_.way)) publish(shared_.bytes);
        }
    }

  private:
    static void await(auto condition) {
        while (!spin(condition, 1 << 20)) {}
    }
    void publish(uint64_t bytes) { shared_.written.store(written_ += bytes, std::memory_order_release); }
    void return_line() {
        for (uint64_t i = 0; i < kRoundTrips; ++i) {
            ++round_trips_;
            await([&] { return shared_.ping.load(std::memory_order_acquire) == round_trips_; });
            shared_.pong.store(round_trips_, std::memory_order_release);
        }
    }
    void write() {
        for (uint64_t from = 0; from < shared_.bytes;) {
            const uint64_t bytes = std::min<uint64_t>(kFragment, shared_.bytes - from);
            std::byte* const to = shared_.area + at_;
            if (shared_.way == CopyWay::learn) path_.copy(to, source_ + from, bytes, CopyPath::CopyDestination::streamed);
            if (shared_.way == CopyWay::ordinary) copy_by_call(to, source_ + from, bytes);
            if (shared_.way == CopyWay::past_caches) copy_past_caches(to, source_ + from, bytes);
            at_ = (at_ + bytes) % kArea;
            from += bytes;
            publish(bytes);
        }
    }

    SharedCopies& shared_;
    const std::byte* const source_;
    CopyPath path_;
    uint64_t written_ = 0, round_trips_ = 0;
    size_t at_ = 0;
};

/// The reader: asks for messages, and copies each to its own memory.
class CopyReader {
  public:
    CopyReader(SharedCopies& shared, std::byte* target, pid_t writer) : shared_(shared), target_(target), writer_(writer) {}

    /// Transfers one message. Returns false if the writer does not respond, or the kernel does not copy.
    bool transfer(CopyWay way, uint64_t bytes) {
        if (!responds_) return false;
        shared_.way = way;
        shared_.bytes = bytes;
        shared_.request.store(++requests_, std::memory_order_release);
        if (way == CopyWay::line && !send_line()) return false;
        for (uint64_t from = 0; from < bytes;) {
            const uint64_t piece = is_copied(way) ? std::min<uint64_t>(kFragment, bytes - from) : bytes;
            seen_ += piece;
            if (!await(shared_.written, seen_)) return false;
            if (is_copied(way)) {
                copy_by_call(target_ + from, shared_.area + at_, piece);
                at_ = (at_ + piece) % kArea;
            }
            from += piece;
        }
        return way != CopyWay::kernel || read_memory(bytes);
    }
    /// Returns the time of one message in microseconds, in the fastest of some batches; -1 if it can't be transferred.
    double time(CopyWay way, uint64_t bytes) {
        double shortest = -1;
        for (int batch = -1; batch < kBatches; ++batch) {  // the first one warms the caches
            const auto start = Clock::now();
            auto now = start;
            long messages = 0;
            for (; now - start < kBatch; now = Clock::now(), ++messages)
                if (!transfer(way, bytes)) return -1;
            const double one = std::chrono::duration<double, std::micro>(now - start).count() / static_cast<double>(messages);
            if (batch >= 0 && (shortest < 0 || one < shortest)) shortest = one;
        }
        return shortest;
    }
    bool responds() const { return responds_; }

  private:
    bool await(const std::atomic<uint64_t>& word, uint64_t least) {
        const auto there = [&] { return word.load(std::memory_order_acquire) >= least; };
        const auto start = Clock::now();
        while (!spin(there, 1 << 16))
            if (Clock::now() - start > kPatience) return responds_ = false;
        return true;
    }
    bool send_line() {
        for (uint64_t i = 0; i < kRoundTrips; ++i) {
            shared_.ping.store(++round_trips_, std::memory_order_release);
            if (!await(shared_.pong, round_trips_)) return false;
        }
        return true;
    }
    /// Copies from the writer's source, which fork() has placed at the address of this process's target.
    bool read_memory(uint64_t bytes) const {
        const iovec mine{target_, bytes}, theirs{target_ + kMostCopy, bytes};
        return process_vm_readv(writer_, &mine, 1, &theirs, 1, 0) == static_cast<ssize_t>(bytes);
    }

    SharedCopies& shared_;
    std::byte* const target_;
    const pid_t writer_;
    uint64_t requests_ = 0, seen_ = 0, round_trips_ = 0;
    size_t at_ = 0;
    bool responds_ = true;
};

bool bind_to(uint32_t cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

void* map(size_t bytes, int flags) {
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : memory;
}

void measure(CopyReader& reader, const SharedCopies& shared, CopyReport& report) {
    report.line_ns = reader.time(CopyWay::line, 1) * 1e3 / (2 * kRoundTrips);
    reader.time(CopyWay::learn, 64 * 1024);
    report.distance = static_cast<CopyPath::CacheDistance>(shared.distance.load());
    for (uint64_t bytes = kLeastCopy; bytes <= kMostCopy; bytes *= 2)
        report.times.push_back({bytes, reader.time(CopyWay::ordinary, bytes), reader.time(CopyWay::past_caches, bytes),
                                reader.time(CopyWay::kernel, bytes)});
    if (!reader.responds())
        report.problem = fmt::format("the process on core {} did not respond for {} seconds; try again on a less busy machine",
                                     report.cores.cpus[1], kPatience.count());
}

/// Runs the writer in a child on the second core, and measures on the first.
void measure_with_child(SharedCopies& shared, std::byte* buffers, CopyReport& report) {
    const pid_t parent = getpid(), writer = fork();
    if (writer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent || !bind_to(report.cores.cpus[1])) _exit(1);
        std::memset(buffers + kMostCopy, 2, kMostCopy);
        CopyWriter(shared, buffers + kMostCopy).run();
    }
    if (writer < 0) {
        report.problem = fmt::format("no process can be started ({}); check `ulimit -u`", std::strerror(errno));
        return;
    }
    if (bind_to(report.cores.cpus[0])) {
        std::memset(buffers, 1, kMostCopy);
        CopyReader reader(shared, buffers, writer);
        measure(reader, shared, report);
    } else {
        report.problem =
            fmt::format("the system does not bind this process to core {} ({})", report.cores.cpus[0], std::strerror(errno));
    }
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
}

}  // namespace

CopyReport measure_copies(const CorePair& cores) {
    CopyReport report;
    report.cores = cores;
    cpu_set_t before;
    void* const shared = map(sizeof(SharedCopies), MAP_SHARED);
    void* const buffers = map(2 * kMostCopy, MAP_PRIVATE);
    if (shared && buffers && sched_getaffinity(0, sizeof before, &before) == 0) {
        measure_with_child(*new (shared) SharedCopies, static_cast<std::byte*>(buffers), report);
        sched_setaffinity(0, sizeof before, &before);
    } else {
        report.problem = fmt::format("there are no {} MB of memory for the measurement ({})", 6, std::strerror(errno));
    }
    if (shared) munmap(shared, sizeof(SharedCopies));
    if (buffers) munmap(buffers, 2 * kMostCopy);
    return report;
}

}  // namespace starling
