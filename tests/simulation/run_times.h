// The processor time of many runs: how it is distributed, and which seeds took longest.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

namespace starling::simulation {

class RunTimes {
  public:
    void add(uint64_t seed, const rusage& used) {
        const auto us = [](const timeval& time) {
            return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
        };
        times_.emplace_back(us(used.ru_utime) + us(used.ru_stime), seed);
        system_us_ += us(used.ru_stime);
        faults_ += static_cast<uint64_t>(used.ru_minflt);
    }

    void print() {
        if (times_.size() < 2) return;
        std::sort(times_.begin(), times_.end());
        const uint64_t all = sum(times_.size());
        std::printf(
            "processor time: %.1f s, %.0f %% of it the kernel's; a run takes %.1f ms on average, median %.1f ms, %.0f page "
            "faults; "
            "the slowest tenth takes %.0f %%, the slowest hundredth %.0f %%\n",
            static_cast<double>(all) / 1e6, percent(system_us_, all), ms(all) / count(), ms(times_[times_.size() / 2].first),
            static_cast<double>(faults_) / count(), percent(sum(times_.size() / 10), all),
            percent(sum(times_.size() / 100), all));
        std::printf("slowest seeds:");
        for (size_t i = times_.size(); i-- > times_.size() - std::min<size_t>(kShown, times_.size());)
            std::printf(" %" PRIu64 " (%.0f ms)", times_[i].second, ms(times_[i].first));
        std::printf("\n");
    }

  private:
    static constexpr size_t kShown = 5;

    static double ms(uint64_t us) { return static_cast<double>(us) / 1e3; }
    static double percent(uint64_t part, uint64_t all) {
        return all == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(all);
    }
    double count() const { return static_cast<double>(times_.size()); }
    /// Adds up the times of the slowest runs, once they are sorted.
    uint64_t sum(size_t slowest) const {
        return std::accumulate(times_.end() - static_cast<ptrdiff_t>(slowest), times_.end(), uint64_t{0},
                               [](uint64_t before, const auto& one) { return before + one.first; });
    }

    std::vector<std::pair<uint64_t, uint64_t>> times_;  ///< microseconds of a run, and its seed
    uint64_t system_us_ = 0, faults_ = 0;
};

}  // namespace starling::simulation
