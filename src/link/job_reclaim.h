// When a job may be forgotten: its mapping, its peers, the sessions with them.
//
//   met, alive                 kept, whether or not there is a communicator: numbers of messages go on where they were
//   dead, held                 kept: a group, a communicator or a call names it; operations on it end with an error
//   dead, not held, owed       kept: it has sent what a communicator that is still being made may receive
//   dead, not held, not owed   forgotten
//   never mapped, not held     forgotten: nothing is known of it but its address
//
// A job is dead when its launcher says so or is gone, and everything it had put into our memory has been delivered. So
// nothing of it can come later but from a process that outlives its failed job for a moment: that is met anew, found
// dead, and forgotten again.
#pragma once

#include "link/job.h"

namespace starling::link {

/// What decides whether a job may be forgotten.
struct Standing {
    bool own = false;      ///< this process's
    bool held = false;     ///< Job::held()
    bool exposed = false;  ///< accesses to exposed memory name peers and hold nothing
    bool mapped = false;
    bool dead = false;
    bool owed = false;  ///< has sent what a communicator that is still being made may receive
};
/// The rules above. Pure: tests/unit/link_job_reclaim_test.cpp tries them in every order of events.
constexpr bool may_be_forgotten(const Standing& job) {
    if (job.own || job.held || job.exposed) return false;
    return !job.mapped || (job.dead && !job.owed);
}

/// From now on no job that was met is forgotten: this process exposes memory, or reaches that of others.
void keep_met_jobs();

/// Forgets all jobs that may be forgotten. Not from within a poll, and not while a batch of the network is open.
void forget_gone_jobs();

/// Before a process meets more jobs: looks whether those that it has met live and forgets those that may be, once there are
/// twice as many as after the last look. So what is kept is bounded by what is alive, at a constant cost per job, whether or not the
/// process ever waits for long. As forget_gone_jobs().
void make_room_for_jobs();

}  // namespace starling::link
