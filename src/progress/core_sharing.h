// Finds the other processes on this core, from the table in which processes of known jobs record their cores (job/places.h).
#pragma once

#include <cstdint>

namespace starling::progress {

/// Starts to record this process's core. Call it once, after link::start().
void claim_entry();
/// Removes the record of this process's core, in MPI_Finalize: from here on the work of this process does not depend on its neighbours.
void leave_place();

/// The other known processes on this core.
struct Company {
    bool neighbour;  ///< whether a process of a known job is awake here
    bool contested;  ///< whether one of them has found that unknown threads want this core
};
/// Returns an opaque number of the core on which this thread runs. Faster than find_company().
uint32_t own_core();
/// Records that this process runs on `cpu`, and whether it has found that core contested; returns which processes are there. Takes a few
/// loads if nothing has changed. Needs the library's lock.
Company find_company(uint32_t cpu, bool contested);

/// Moves this thread to a core that it may use and that has fewer known processes (CoreLoads::should_move), if there is one. If
/// several processes share a core, the first by job and rank stays. The thread's affinity does not change. Returns whether it moved. Needs
/// the library's lock.
bool move_to_emptier_core();

/// Record that this process sleeps from here on, or is awake again.
void mark_self_asleep();
void mark_self_awake();

}  // namespace starling::progress
