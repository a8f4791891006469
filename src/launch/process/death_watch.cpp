#include "launch/process/death_watch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <ctime>
#include <utility>

#include "base/clock.h"
#include "base/linux_calls.h"
#include "base/process.h"
#include "base/thread.h"

namespace starling::launch {

namespace {

/// A process whose first thread ends may have other threads that still run. It is checked so often, at this interval, and then left to
/// SIGCHLD: its first thread may have ended alone, or it may have called execve.
constexpr uint32_t kTries = 40;
constexpr uint64_t kBetweenTriesNs = 25'000;

futex_waitv word_to_sleep_on(const std::atomic<uint32_t>& word, uint32_t value) {
    return {value, reinterpret_cast<uint64_t>(&word), FUTEX_32, 0};
}

}  // namespace

DeathWatch::DeathWatch(std::atomic<uint32_t>& lives, const std::vector<WatchedRank>& ranks,
                       std::function<void(uint32_t rank)> ended)
    : lives_(lives), ended_(std::move(ended)) {
    for (const WatchedRank& rank : ranks) watches_.push_back({rank});
    started_ = start_thread(thread_, run_thread, this) == 0;
}

DeathWatch::~DeathWatch() {
    if (!started_) return;
    stopping_.store(1);
    syscall(SYS_futex, &stopping_, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    pthread_join(thread_, nullptr);
}

void* DeathWatch::run_thread(void* self) {
    request_short_slices();  // survivors wait for this thread's news
    static_cast<DeathWatch*>(self)->run();
    return nullptr;
}

void DeathWatch::run() {
    while (stopping_.load() == 0) {
        lives_seen_ = lives_.load(std::memory_order_acquire);
        bool suspects = false;
        for (RankWatch& watch : watches_) suspects |= examine(watch);
        if (!sleep(suspects)) return;
    }
}

// Returns whether the rank must be examined again soon. Each value of the word leads to a later phase, so no content of the word can keep
// this thread busy.
bool DeathWatch::examine(RankWatch& watch) {
    const uint32_t value = watch.word->load(std::memory_order_acquire);
    if (watch.phase == WatchPhase::not_held && (value & FUTEX_WAITERS)) {
        watch.held = value & ~uint32_t{FUTEX_OWNER_DIED};  // the rank may have died before this first look
        watch.phase = WatchPhase::held;
    }
    if (watch.phase == WatchPhase::held && value != watch.held) watch.phase = WatchPhase::suspected;
    if (watch.phase != WatchPhase::suspected) return false;
    const bool ended = process_ended(watch.pid);
    if (ended) ended_(watch.rank);
    if (ended || ++watch.tries == kTries) watch.phase = WatchPhase::done;
    return watch.phase == WatchPhase::suspected;
}

/// Sleeps until a word changes, or for a moment only. Returns false if the kernel cannot do that.
bool DeathWatch::sleep(bool briefly) {
    futex_waitv words[kMostRanks + 2] = {word_to_sleep_on(stopping_, 0), word_to_sleep_on(lives_, lives_seen_)};
    uint32_t count = 2;
    for (const RankWatch& watch : watches_)
        if (watch.phase == WatchPhase::held) words[count++] = word_to_sleep_on(*watch.word, watch.held);
    const uint64_t end = now_ns() + kBetweenTriesNs;
    const timespec until{static_cast<time_t>(end / 1'000'000'000), static_cast<long>(end % 1'000'000'000)};
    const long woken = syscall(SYS_futex_waitv, words, count, 0, briefly ? &until : nullptr, CLOCK_MONOTONIC);
    return woken >= 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT;
}

}  // namespace starling::launch
