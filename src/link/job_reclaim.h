// Rules by which a job may be forgotten, that is, its mapping, its peers, and the sessions with them.
//
//   mapped, alive              kept, even without a communicator: sequence numbers continue
//   dead, held                 kept: a group, a communicator or a call refers to it; operations on it end with an error
//   dead, not held, owed       kept: it has sent messages that a communicator under construction may receive
//   dead, not held, not owed   forgotten
//   never mapped, not held     forgotten: only its address is known
//
// A job is dead when its launcher has marked it so or has ended, and all data that it had put into our memory were delivered.
// After that, packets can arrive only from a process that outlives its failed job for a moment. Then the job is interned again,
// found dead, and forgotten again.
#pragma once

#include "link/job.h"

namespace starling::link {

/// The facts that decide whether a job may be forgotten.
struct ReclaimState {
    bool own = false;   ///< whether it is this process's own job
    bool held = false;  ///< value of Job::held()
    /// Whether this process exposes memory or accesses others' memory: accesses refer to peers without holding their jobs.
    bool exposed = false;
    bool mapped = false;
    bool dead = false;
    bool owed = false;  ///< whether it has sent messages that a communicator under construction may still receive
};
/// Applies the rules at the top of this file. A pure function: tests/unit/link_job_reclaim_test.cpp tries the rules in every order of
/// events.
constexpr bool may_be_forgotten(const ReclaimState& job) {
    if (job.own || job.held || job.exposed) return false;
    return !job.mapped || (job.dead && !job.owed);
}

/// Declares that this process exposes memory or accesses that of others: from now on no mapped job is forgotten.
void keep_mapped_jobs();

/// Forgets all jobs for which may_be_forgotten() is true. Must not be called during a poll of a transport, nor between begin_batch() and
/// end_batch().
void forget_ended_jobs();

/// Call it before more jobs are added. Once there are twice as many jobs as after the last check, it checks which of them live, and forgets
/// those that may be forgotten. So memory is bounded by the number of living jobs, at a constant cost per job, even if the process never
/// waits for long. The restrictions of forget_ended_jobs() apply.
void make_room_for_jobs();

}  // namespace starling::link
