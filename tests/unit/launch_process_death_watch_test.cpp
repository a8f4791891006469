// The launcher's thread that sees a rank die by its life lock, before the kernel has freed the rank's memory.
#include "launch/process/death_watch.h"

#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "job/job_segment.h"
#include "job/life_lock.h"

namespace starling::launch {
namespace {

using namespace std::chrono_literals;

bool wait_for(const std::function<bool()>& condition, std::chrono::milliseconds limit = 200s) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

/// Returns whether the parent could reap the process now.
bool is_zombie(pid_t pid) {
    siginfo_t about{};
    return waitid(P_PID, static_cast<id_t>(pid), &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid == pid;
}

/// Touches so much memory that the kernel needs milliseconds to free it.
void touch_much_memory() {
    constexpr size_t kBytes = size_t{96} << 20;
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    madvise(memory, kBytes, MADV_NOHUGEPAGE);
    for (size_t i = 0; memory != MAP_FAILED && i < kBytes; i += 4096) static_cast<volatile char*>(memory)[i] = 1;
}

/// Ranks of a job, which are children of the test, and the watch over them.
class DeathWatches : public testing::Test {
  protected:
    void SetUp() override { ASSERT_EQ(job::JobSegment::create(3, nullptr, 0, segment_), 0); }
    void TearDown() override { end_job(); }

    void end_job() {
        watch_.reset();
        for (const auto& [rank, pid] : pids_) {
            kill(pid, SIGKILL);
            waitpid(pid, nullptr, 0);
        }
        pids_.clear();
        reports_.clear();
    }

    /// Starts a rank that acquires its life lock and then runs `work`.
    void start_rank(uint32_t rank, const std::function<void()>& work) {
        const pid_t pid = fork();
        if (pid == 0) {
            job::acquire_life_lock(segment_, rank);
            work();
            for (;;) pause();
        }
        pids_[rank] = pid;
    }

    void watch() {
        std::vector<DeathWatch::WatchedRank> ranks;
        for (const auto& [rank, pid] : pids_) ranks.push_back({rank, pid, &job::life_word(segment_, rank)});
        watch_ = std::make_unique<DeathWatch>(segment_.header().lives, ranks, [this](uint32_t rank) {
            const bool reapable = is_zombie(pids_[rank]);
            const std::lock_guard lock(mutex_);
            reports_.push_back(rank);
            before_reaping_ += reapable ? 0 : 1;
        });
    }

    bool all_live() {
        return wait_for([this] { return segment_.header().lives.load() == pids_.size(); });
    }

    std::vector<uint32_t> reports() {
        const std::lock_guard lock(mutex_);
        return reports_;
    }

    /// Kills three ranks one after the other. Each is reported.
    void kill_ranks_with_much_memory() {
        std::atomic<uint32_t>& ready = segment_.header().all_arrived;
        for (uint32_t rank = 0; rank < 3; ++rank) {
            start_rank(rank, [&ready] {
                touch_much_memory();
                ready.fetch_add(1);
            });
        }
        watch();
        ASSERT_TRUE(all_live());
        ASSERT_TRUE(wait_for([&ready] { return ready.load() == 3; }));
        EXPECT_TRUE(reports().empty());
        for (const uint32_t rank : {1u, 0u, 2u}) {
            const size_t before = reports().size();
            kill(pids_[rank], SIGKILL);
            ASSERT_TRUE(wait_for([&] { return reports().size() > before; }));
            EXPECT_EQ(reports().back(), rank);
        }
    }

    job::JobSegment segment_;
    std::map<uint32_t, pid_t> pids_;
    std::unique_ptr<DeathWatch> watch_;
    std::mutex mutex_;
    std::vector<uint32_t> reports_;
    int before_reaping_ = 0;  ///< number of reports of processes that could not be reaped yet
};

TEST_F(DeathWatches, KilledRankIsReportedBeforeItsMemoryIsFreed) {
    // On a busy core the watch may run only after the kernel has freed the memory.
    for (int tries = 0; tries < 30 && before_reaping_ == 0 && !HasFailure(); ++tries) {
        end_job();
        segment_ = {};
        ASSERT_EQ(job::JobSegment::create(3, nullptr, 0, segment_), 0);
        kill_ranks_with_much_memory();
    }
    EXPECT_GE(before_reaping_, 1);
}

TEST_F(DeathWatches, RankThatAcquiresItsLifeLockLateIsWatchedToo) {
    start_rank(0, [] {});
    ASSERT_TRUE(all_live());
    pids_[1] = fork();
    if (pids_[1] == 0) {
        usleep(50'000);
        job::acquire_life_lock(segment_, 1);
        for (;;) pause();
    }
    watch();
    ASSERT_TRUE(all_live());
    kill(pids_[1], SIGKILL);
    ASSERT_TRUE(wait_for([this] { return !reports().empty(); }));
    EXPECT_EQ(reports(), std::vector<uint32_t>{1});
}

TEST_F(DeathWatches, RankThatDiesBeforeTheFirstLookIsReported) {
    start_rank(0, [] {});
    ASSERT_TRUE(all_live());
    kill(pids_[0], SIGKILL);
    ASSERT_TRUE(wait_for([this] { return (job::life_word(segment_, 0).load() & FUTEX_OWNER_DIED) != 0; }));
    watch();
    EXPECT_TRUE(wait_for([this] { return reports() == std::vector<uint32_t>{0}; }));
}

TEST_F(DeathWatches, ProcessWithSeveralThreadsIsReportedWhenAllOfThemEnd) {
    start_rank(0, [] {
        for (int i = 0; i < 3; ++i) std::thread([] { pause(); }).detach();
    });
    watch();
    ASSERT_TRUE(all_live());
    kill(pids_[0], SIGKILL);
    ASSERT_TRUE(wait_for([this] { return reports().size() == 1 || is_zombie(pids_[0]); }));
}

// A process outlives the thread that holds its life lock.
TEST_F(DeathWatches, EndOfOneThreadIsNotADeath) {
    start_rank(0, [] {
        std::thread([] { pause(); }).detach();
        syscall(SYS_exit, 0);  // ends this thread only; pthread_exit would unwind the test
    });
    watch();
    ASSERT_TRUE(all_live());
    ASSERT_TRUE(wait_for([this] { return (job::life_word(segment_, 0).load() & FUTEX_OWNER_DIED) != 0; }));
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(reports().empty());
}

TEST_F(DeathWatches, ExecveIsNotADeath) {
    start_rank(0, [] { execl("/bin/sleep", "sleep", "60", nullptr); });
    watch();
    ASSERT_TRUE(all_live());
    ASSERT_TRUE(wait_for([this] { return (job::life_word(segment_, 0).load() & FUTEX_OWNER_DIED) != 0; }));
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(reports().empty());
}

TEST_F(DeathWatches, ChildOfARankMayEnd) {
    start_rank(0, [] {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        waitpid(child, nullptr, 0);
    });
    watch();
    ASSERT_TRUE(all_live());
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(reports().empty());
}

// Every process of the job can write the word.
TEST_F(DeathWatches, ForgedMarkIsNotADeath) {
    start_rank(0, [] {});
    watch();
    ASSERT_TRUE(all_live());
    std::this_thread::sleep_for(20ms);
    std::atomic<uint32_t>& word = job::life_word(segment_, 0);
    word.fetch_or(FUTEX_OWNER_DIED);
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    std::this_thread::sleep_for(50ms);
    EXPECT_TRUE(reports().empty());
}

}  // namespace
}  // namespace starling::launch
