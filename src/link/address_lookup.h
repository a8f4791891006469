// Questions to this host's daemon: where this host's segment of a job is, and where a rank on another host listens.
#pragma once

#include "link/job.h"

namespace starling::link {

/// Turns the address of a job as another host knows it into that of this host's segment of it. Waits for the daemon,
/// which may have to ask others first. MPI_ERR_PROC_ABORTED with failure_text() if nobody knows the job.
int resolve(job::JobAddress& address);

/// Begins to find and map the job with this id, which has sent us something. Asking again while it is under way is free.
void resolve_later(job::JobId id);

/// Has the daemon write into the job's address table where the rank listens and whether it lives: as soon as that is
/// known, if it is not, and once more, if it is. Does not wait. Asking again while the question is open is free.
void locate(Job& job, uint32_t rank);

/// Has the daemon tell the rank, on another host, that this process has given it up. Does not wait; who can't be told finds
/// out by itself if it sends something.
void tell_given_up(const Job& job, uint32_t rank);

/// Takes what the daemon has answered. Whether there was anything.
bool poll_answers();

/// Questions that are not answered yet.
bool anything_asked();

/// Another way to fill in the word of a rank of the own job, if another process manager has started it: called again and
/// again until it returns true. Null: the daemon is asked.
extern bool (*other_locate)(job::JobSegment& segment, uint32_t rank);

/// Whether an answer may come without a ring of the doorbell, so that a sleep must be short.
bool must_look_for_answers();

}  // namespace starling::link
