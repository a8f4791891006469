// Requests to this host's daemon: for the location of this host's segment of a job, and for the port of a rank on another host.
#pragma once

#include "link/job.h"

namespace starling::link {

/// Replaces the address of a job on another host by the address of this host's segment of the job. Waits for the daemon, which may have to
/// ask other daemons first. Returns MPI_ERR_PROC_ABORTED with failure_text() if no daemon knows the job.
int resolve(job::JobAddress& address);

/// Starts to find and map the job with this id, from which a packet has arrived. Repeated calls while this is pending cost nothing.
void start_resolving(job::JobId id);

/// Makes the daemon write the rank's port and state into the job's address table: at once if the daemon knows them, otherwise when it
/// learns them. Does not wait. Repeated calls while the request is pending cost nothing.
void locate(Job& job, uint32_t rank);

/// Makes the daemon notify the rank, on another host, that this process has declared it unreachable. Does not wait. If the notice is lost,
/// the rank finds out at its next message to this process.
void notify_abandoned(const Job& job, uint32_t rank);

/// Processes the daemon's replies. Returns whether there were any.
bool poll_answers();

/// Returns whether requests are pending.
bool has_pending_queries();

/// Alternative to locate() for ranks of this process's own job, if another process manager has started it. Called repeatedly until it
/// returns true. Null: the daemon is asked.
extern bool (*other_locate)(job::JobSegment& segment, uint32_t rank);

/// Returns whether a reply may arrive without a ring of the doorbell, so that sleeps must be short.
bool must_poll_for_answers();

}  // namespace starling::link
