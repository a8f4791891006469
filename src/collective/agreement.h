// Agreement, the last step of a collective constructor (of a communicator, window, ...): it succeeds on all members or fails on all.
#pragma once

#include "collective/core/task.h"
#include "collective/core/view.h"
#include "comm/comm.h"

namespace starling::collective {

/// Returns MPI_SUCCESS if every member of the intra-communicator passes MPI_SUCCESS as `error`; otherwise every member returns an error. A
/// member that failed returns its own error with its failure_text(). The others return the error of the lowest failed rank, with a text
/// that names it and `what` (the object under construction).
///
/// Collective and blocking: when it returns, all members have called it. Do everything that can fail before the call. A member that had to
/// use the memory reserve (base/kept_memory.h) counts as failed.
int agree(comm::Comm& comm, int error, const char* what);

/// Agrees among the members of a view, by messages under the view's tag. Every member must await the task, even if an earlier step failed:
/// after a process died, some members know of the death and others do not yet.
Task agree(View v, int error, const char* what);

}  // namespace starling::collective
