// Detects that a user asks mpiexec to end for the second time.
#pragma once

#include <chrono>
#include <csignal>

namespace starling::launch {

/// Detects a repeated SIGINT or SIGTERM. The first one is passed on to the ranks; a second soon after it means that the job must be killed.
/// Later ones are passed on too, since an interactive program may handle many interrupts.
class RepeatedSignal {
  public:
    /// Records that `signal` arrived. Returns true if it repeats an earlier request to end. `ending`: processes of the job have ended because
    /// of the earlier request, so a repetition counts however late it is.
    bool grows(int signal, bool ending = false) {
        if (signal != SIGINT && signal != SIGTERM) return false;
        // timeout(1) sends each signal twice: to its child, and to their process group.
        constexpr std::chrono::milliseconds kSameWish{50}, kSoon{2000};
        const auto now = std::chrono::steady_clock::now();
        const bool fresh = !asked_ || now - last_ > kSameWish;
        const bool insists = asked_ && fresh && (ending || now - last_ <= kSoon);
        if (fresh) last_ = now;
        asked_ = true;
        return insists;
    }

  private:
    bool asked_ = false;
    std::chrono::steady_clock::time_point last_{};
};

/// Time that the daemons have to end the job after the second signal. Then mpiexec ends and leaves the job to them.
inline constexpr std::chrono::milliseconds kLastMercy{2000};

}  // namespace starling::launch
