// For --bind-to auto: finds the cores of this host on which this user's ranks run, whichever launcher started them, and selects the cores
// on which new ranks start.
#pragma once

#include <sched.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_segment.h"
#include "job/segment_view.h"

namespace starling::launch {

/// The number of ranks, awake or asleep, on each core, as the ranks themselves report it in their job segments.
class CoreUse {
  public:
    /// Counts the ranks of a job that have not ended. Ranks that have not reported their core yet count in ranks() only.
    void add(const job::JobSegment& segment);
    void add(const job::SegmentView& sight);
    /// Counts one more rank on this core.
    void add(uint32_t cpu);

    uint32_t ranks() const { return ranks_; }
    uint32_t on(uint32_t cpu) const { return cpu < on_.size() ? on_[cpu] : 0; }

    /// Returns the usable cores with the fewest ranks. Ties are resolved by the ranks on hardware threads that share the core. The result
    /// is empty only if `usable` is. `siblings` returns the other hardware threads of a cpu's core.
    cpu_set_t least_used(const cpu_set_t& usable, const std::function<std::vector<uint32_t>(uint32_t)>& siblings) const;

  private:
    void add_at(uint32_t place);

    std::vector<uint32_t> on_;
    uint32_t ranks_ = 0;
};

/// Returns the pids of this user's other launchers on this host. They are found by the names of the sockets on which they serve their
/// ranks, so launchers that ended leave nothing to clean up.
std::vector<int32_t> other_launchers();
/// Returns the pids of launchers found in the text of /proc/net/unix.
std::vector<int32_t> launchers_in(std::string_view sockets, uint32_t user, int32_t except);

/// Counts the ranks of all jobs of this launcher.
void add_jobs_of(int32_t launcher, CoreUse& use);

/// Returns the other hardware threads of a cpu's core; empty if the system does not report them.
std::vector<uint32_t> siblings_of(uint32_t cpu);
/// Parses a list of cpus such as "0-2,8".
std::vector<uint32_t> parse_cpu_list(std::string_view list);

/// Returns the number of cores that this process may keep busy: those of its affinity mask. A processor time limit of its control group, or
/// of a parent group, reduces the number.
uint32_t cores_allowed();
/// Returns the cores that the text of a cgroup's cpu.max ("QUOTA PERIOD") grants, rounded up; ~0u: no limit.
uint32_t cores_of_quota(std::string_view cpu_max);

}  // namespace starling::launch
