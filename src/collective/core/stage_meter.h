// Chooses between the shared-memory stage and messages for long blocking collectives of two processes of a host. The stage copies twice. A
// message may move by the kernel's single copy (message/protocol/timed_copy.h), which takes half the time on some processors and more on
// others (docs/measurements/mesh-2026-11-28.md). So both members time their calls of both ways. When a trial ends, they add their times, and
// both choose alike.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace starling::collective {

enum class StageWay : uint8_t { stage, messages };

/// The times and the choice for calls of one kind and one length class. All members make the same calls, so their counters agree.
class StageTimes {
  public:
    /// Measured calls of each way in a trial, of which the median counts.
    static constexpr uint32_t kSamples = 5;
    /// Calls by the stage before the first trial.
    static constexpr uint32_t kWarmCalls = 4;
    /// Calls by messages in the first trial. Messages find their own best way meanwhile, and only the last calls are measured.
    static constexpr uint32_t kFirstTrial = 96;
    static constexpr uint32_t kLaterTrial = 16;
    /// Calls between two trials: kAgain after a change of the choice, twice as many after each trial without one, at most kRarely.
    static constexpr uint32_t kAgain = 1024, kRarely = 8192;
    /// Share of the chosen way's time that the other way must stay below to be chosen instead.
    static constexpr double kClearlyLess = 0.9;

    struct Call {
        StageWay way;
        bool measured;
    };
    /// Returns whether the trial has ended, so that the members must call decide() before the next call.
    bool is_decision_due() const { return at_ >= rest_ + kSamples + trial_; }
    /// Returns this member's times of the stage and of messages, ns.
    std::array<int64_t, 2> times() const { return {median(0), median(1)}; }
    /// Chooses for the next calls. `sums`: the sums of all members' times().
    void decide(const std::array<int64_t, 2>& sums) {
        const auto of = [&](StageWay way) { return static_cast<double>(sums[static_cast<size_t>(way)]); };
        const bool changes = of(other()) < kClearlyLess * of(way_);
        again_ = changes ? kAgain : std::min(2 * again_, kRarely);
        if (changes) way_ = other();
        rest_ = again_;
        trial_ = kLaterTrial;
        at_ = 0;
    }
    /// Counts a call and returns its way.
    Call next() {
        const uint32_t at = at_++;
        if (at < rest_) return {way_, false};
        if (at < rest_ + kSamples) return {way_, true};
        return {other(), at >= rest_ + trial_};
    }
    /// Adds the time of the call that next() counted last, if it is measured.
    void add(StageWay way, uint64_t ns) {
        samples_[static_cast<size_t>(way)][at_ % kSamples] = static_cast<uint32_t>(std::min<uint64_t>(ns, ~uint32_t{0}));
    }

  private:
    StageWay other() const { return way_ == StageWay::stage ? StageWay::messages : StageWay::stage; }
    int64_t median(size_t way) const {
        std::array<uint32_t, kSamples> sorted = samples_[way];
        std::nth_element(sorted.begin(), sorted.begin() + kSamples / 2, sorted.end());
        return sorted[kSamples / 2];
    }

    std::array<uint32_t, kSamples> samples_[2] = {};
    uint32_t at_ = 0;  ///< calls since the last decision
    uint32_t rest_ = kWarmCalls, trial_ = kFirstTrial, again_ = kAgain / 2;
    StageWay way_ = StageWay::stage;
};

/// The choices of one communicator.
class StageMeter {
  public:
    /// Length from which on the members choose, bytes. A shorter message is eager, and the kernel never copies it.
    static constexpr uint64_t kShortest = (16 << 10) + 1;
    static constexpr size_t kKinds = 3, kLengths = 8;

    /// Returns the times for a kind in 0 … kKinds-1, and calls of `bytes` bytes.
    StageTimes& of(size_t kind, uint64_t bytes) {
        const auto length = static_cast<size_t>(std::bit_width((bytes - 1) >> 14));
        return sizes_[kind][std::min(length, kLengths) - 1];
    }

  private:
    StageTimes sizes_[kKinds][kLengths];
};

}  // namespace starling::collective
