// What the launcher knows of this host's part of a job, and what became of its processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "job/job_segment.h"
#include "launch/common/event_loop.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

/// A process of a job on this host.
struct Rank {
    pid_t pid = -1;  ///< also its process group; -1 once nothing is left of either
    bool running = false;
    volatile pid_t* guard_slot = nullptr;
    int core = -1;               ///< in the launcher's CoreMap; -1: not bound
    bool marked_failed = false;  ///< all who look at the segment see it
};

struct Job {
    uint32_t number = 0;  ///< 0 for the job that its patron wanted, then counting the spawned
    job::JobSegment segment;
    std::vector<Rank> ranks;            ///< of this host, by JobSegment::local_index
    std::vector<std::string> programs;  ///< by appnum, for messages
    uint32_t running = 0;               ///< ranks of this host not reaped yet
    /// Whether it goes down with its parent.
    bool connected() const { return segment.header().parted.load(std::memory_order_acquire) == 0; }
    bool external = false;  ///< a singleton's: not started by this launcher
    bool failing = false;
    bool absent_noted = false;        ///< a rank has ended without MPI_Init, and it is looked whether others wait for it
    EventLoop::TimerId deadline = 0;  ///< when failing: the time for SIGKILL
    JobStyle style;

    bool arrival_told = false;         ///< the root knows that all ranks of this host have reached the end of MPI_Init
    bool reported = false;             ///< the root knows that all ranks of this host are gone
    std::vector<uint32_t> tree_hosts;  ///< as in JobPart; empty: its other hosts, if it has any, have no daemons of ours

    job::JobId id() const { return segment.header().id; }
    uint32_t rank_of(size_t index) const { return segment.local_rank(static_cast<uint32_t>(index)); }
    bool has(uint32_t rank) const { return segment.local_index(rank) < ranks.size(); }
    Rank& at(uint32_t rank) { return ranks[segment.local_index(rank)]; }
    const Rank& at(uint32_t rank) const { return ranks[segment.local_index(rank)]; }
};

}  // namespace starling::launch
