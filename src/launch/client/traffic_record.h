// The traffic of a job's first run, collected from the lines of its profile for the next run (STARLING_PLAN=auto).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/grouping.h"

namespace starling::launch {

/// Sums up the messages between the ranks of the first job; spawned jobs are left out.
class TrafficRecord {
  public:
    struct PairTraffic {
        uint32_t a = 0, b = 0;             ///< the ranks, a < b
        uint64_t messages = 0, bytes = 0;  ///< both ways
    };

    /// Reads whole lines of a profile (docs/profile.md).
    void take(std::string_view lines);

    /// Replaces the hosts' names, which are those that the hosts have for themselves. `names`: as many as hosts().
    void rename_hosts(std::vector<std::string> names) { hosts_ = std::move(names); }

    /// Returns whether all ranks have finalized, so that the record has the whole run.
    bool is_complete() const { return size_ > 0 && finalized_ == size_; }
    uint32_t size() const { return size_; }
    const std::vector<std::string>& hosts() const { return hosts_; }
    const std::vector<uint32_t>& host_of_rank() const { return host_of_rank_; }  ///< indexes in hosts()
    double seconds() const { return std::chrono::duration<double>(ended_ - began_).count(); }
    /// Returns the pairs with traffic, by rank.
    std::vector<PairTraffic> pairs() const;

  private:
    void take_line(std::string_view line);

    std::unordered_map<uint64_t, PairTraffic> pairs_;  ///< by a << 32 | b
    std::vector<std::string> hosts_;
    std::vector<uint32_t> host_of_rank_;
    uint32_t size_ = 0, finalized_ = 0;
    std::chrono::steady_clock::time_point began_{}, ended_{};
};

}  // namespace starling::launch
