// The launcher's record of this host's part of a job and of its processes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "job/job_segment.h"
#include "launch/common/event_loop.h"
#include "launch/common/job_spec.h"
#include "launch/process/death_watch.h"
#include "launch/process/processor_map.h"

namespace starling::launch {

/// A process of a job on this host.
struct LocalRank {
    pid_t pid = -1;  ///< pid and process group; -1 once process and group have ended
    bool running = false;
    volatile pid_t* guard_slot = nullptr;
    std::unique_ptr<ProcessorClaim> processors;  ///< processors to which the rank is bound; null: not bound
    bool marked_failed = false;  ///< true: the job segment shows the failure to all its readers; under Launcher::marks_
};

struct LocalJob {
    uint32_t number = 0;  ///< number of the job within its client: 0 for the first job, spawned jobs count up
    job::JobSegment segment;
    std::vector<LocalRank> ranks;       ///< ranks on this host; the index is JobSegment::local_index
    std::vector<std::string> programs;  ///< names of the programs by appnum, for messages
    uint32_t running = 0;               ///< number of ranks on this host whose processes are not reaped yet
    /// Returns whether the job must end if its parent job fails.
    bool connected() const { return segment.header().parted.load(std::memory_order_acquire) == 0; }
    bool external = false;  ///< true: not started by this launcher, but a singleton or started by another manager
    bool failing = false;
    bool asked_to_end =
        false;  ///< true: a signal that asks the ranks to end was passed on, so the root decides what a failure means
    bool absent_noted = false;        ///< true: a rank ended without MPI_Init, and timed checks look for ranks that wait for it
    EventLoop::TimerId deadline = 0;  ///< timer that sends SIGKILL, while `failing`
    JobStyle style;

    bool arrival_reported = false;  ///< true: the root knows that all ranks of this host have reached the end of MPI_Init
    bool reported = false;          ///< true: the root knows that all ranks of this host have ended
    std::vector<uint32_t>
        tree_hosts;  ///< by index in the job's host table: the host's number in the daemon tree; empty: the job has one host, or its other
                     ///< hosts have no daemon of this universe

    std::vector<std::unique_ptr<DeathWatch>>
        death_watches;  ///< destroyed before `segment` and `ranks`, which their threads use

    job::JobId id() const { return segment.header().id; }
    uint32_t rank_of(size_t index) const { return segment.local_rank(static_cast<uint32_t>(index)); }
    bool has(uint32_t rank) const { return segment.local_index(rank) < ranks.size(); }
    LocalRank& at(uint32_t rank) { return ranks[segment.local_index(rank)]; }
    const LocalRank& at(uint32_t rank) const { return ranks[segment.local_index(rank)]; }
};

/// Returns the end of a sentence about a failed rank: what happens to the `running` others.
std::string fate_of_others(uint32_t running, bool goes_on);

}  // namespace starling::launch
