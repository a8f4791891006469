// --bind-to auto: on which cores of this host this user's ranks are, whoever has started them, and where new ones begin.
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

/// How many ranks say that they are on each core, awake or not.
class CoreUse {
  public:
    /// Counts the ranks of a job that have not ended. Those that have not said yet where they are count in ranks() only.
    void add(const job::JobSegment& segment);
    void add(const job::SegmentView& sight);
    /// One more, on this core.
    void add(uint32_t cpu);

    uint32_t ranks() const { return ranks_; }
    uint32_t on(uint32_t cpu) const { return cpu < on_.size() ? on_[cpu] : 0; }

    /// Of the usable cores those with the least to do, by their ranks and then by those of the hardware threads that share
    /// a core with them; empty only if `usable` is. `siblings` gives the others of a cpu's core.
    cpu_set_t least_used(const cpu_set_t& usable, const std::function<std::vector<uint32_t>(uint32_t)>& siblings) const;

  private:
    void add_at(uint32_t place);

    std::vector<uint32_t> on_;
    uint32_t ranks_ = 0;
};

/// The processes of this user that launch jobs on this host, this one left out: found by the names of the sockets that
/// their ranks ask them through, so nothing is left behind by those that have gone.
std::vector<int32_t> other_launchers();
/// The same from the text of /proc/net/unix.
std::vector<int32_t> launchers_in(std::string_view sockets, uint32_t user, int32_t except);

/// Adds the ranks of every job of this launcher.
void add_jobs_of(int32_t launcher, CoreUse& use);

/// The other hardware threads of a cpu's core. Empty where the system does not say.
std::vector<uint32_t> siblings_of(uint32_t cpu);
/// Reads a list as "0-2,8" is.
std::vector<uint32_t> parse_cpu_list(std::string_view list);

/// So many cores this process may keep busy: those of its affinity mask, fewer where its control group (or one above) is
/// limited to less processor time.
uint32_t cores_allowed();
/// The cores that a text of a cgroup's cpu.max ("QUOTA PERIOD") grants, rounded up; ~0u: as many as there are.
uint32_t cores_of_quota(std::string_view cpu_max);

}  // namespace starling::launch
