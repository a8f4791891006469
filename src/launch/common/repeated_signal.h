// When a user who has asked for an end asks again.
#pragma once

#include <chrono>
#include <csignal>

namespace starling::launch {

/// SIGINT and SIGTERM are passed on; with the second of them the user no longer asks.
class RepeatedSignal {
  public:
    /// `signal` has come. True if it is not the first that asks for an end.
    bool grows(int signal) {
        if (signal != SIGINT && signal != SIGTERM) return false;
        // timeout(1) sends what it sends twice, to its child and to their group.
        constexpr std::chrono::milliseconds kSameWish{50};
        const auto now = std::chrono::steady_clock::now();
        const bool fresh = !asked_ || now - last_ > kSameWish;
        const bool insists = asked_ && fresh;
        if (fresh) last_ = now;
        asked_ = true;
        return insists;
    }

  private:
    bool asked_ = false;
    std::chrono::steady_clock::time_point last_{};
};

/// So long the daemons have after that to end the job; then it is left to them, and mpiexec ends.
inline constexpr std::chrono::milliseconds kLastMercy{2000};

}  // namespace starling::launch
