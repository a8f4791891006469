// DeathWatch: a thread of the launcher that sleeps on the life locks (job/life_lock.h) of ranks of this host, and reports a death before
// SIGCHLD does. Only for jobs that survive deaths. Whatever it misses, the launcher still learns by SIGCHLD: on Linux before 5.16, of ranks
// behind a wrapper that lives on, and of processes whose threads take longer than a millisecond to end.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace starling::launch {

class DeathWatch {
  public:
    /// Largest number of ranks of one watch: the kernel waits for at most 128 words, and two are the watch's own.
    static constexpr size_t kMostRanks = 126;

    struct WatchedRank {
        uint32_t rank = 0;
        pid_t pid = -1;                         ///< the launcher's child, which is asked whether the rank has really ended
        std::atomic<uint32_t>* word = nullptr;  ///< futex word of the life lock
    };

    /// Starts the thread. `lives`: JobHeader::lives. `ended` is called on the thread with each rank whose process cannot execute any more,
    /// at most once per rank.
    DeathWatch(std::atomic<uint32_t>& lives, const std::vector<WatchedRank>& ranks, std::function<void(uint32_t rank)> ended);
    /// Ends the thread. The words must be mapped until then.
    ~DeathWatch();
    DeathWatch(const DeathWatch&) = delete;
    DeathWatch& operator=(const DeathWatch&) = delete;

  private:
    enum class WatchPhase : uint8_t { not_held, held, suspected, done };
    struct RankWatch : WatchedRank {
        WatchPhase phase = WatchPhase::not_held;
        uint32_t held = 0;   ///< value of the word while the rank lives
        uint32_t tries = 0;  ///< number of checks since the process was suspected
    };

    static void* run_thread(void* self);
    void run();
    bool examine(RankWatch& watch);
    bool sleep(bool briefly);

    std::atomic<uint32_t>& lives_;
    std::vector<RankWatch> watches_;
    std::function<void(uint32_t rank)> ended_;
    std::atomic<uint32_t> stopping_ = 0;  ///< futex word; 1: the thread ends
    uint32_t lives_seen_ = 0;
    pthread_t thread_{};
    bool started_ = false;
};

}  // namespace starling::launch
