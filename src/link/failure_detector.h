// What the failure detector knows for certain. src/link/job.h has the other questions about the life of a process.
#pragma once

#include "link/job.h"

namespace starling::link {

/// Returns whether a process has ended for certain: its launcher says so, or its job has ended. Else a process with has_failed_or_ended()
/// may live, but cannot be reached from here.
bool is_known_to_have_ended(const Process& process);

/// Returns whether a process has called MPI_Finalize, as far as this host knows: it handles no packet any more. Its last ones may still be on
/// the way. False if its job is not mapped.
bool has_finalized(const Process& process);

/// Returns whether a process has called MPI_Finalize or has exited, as far as this host knows. One that has only closed its last session, or
/// called shmem_finalize, may return.
bool has_finalized_for_good(const Process& process);

/// Returns whether a process takes no part any more in any communicator that exists now, as far as this host knows: it has called MPI_Finalize
/// or has exited. On this host also if it has closed its last session; a process on another host might have opened one since.
bool has_left(const Process& process);

}  // namespace starling::link
