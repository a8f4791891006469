// Who else is on this core: the places that processes of the jobs we know have written down (boot/places.h).
#pragma once

namespace starling::progress {

/// Begins to write down this process's own place. Once, after link::start().
void take_place();
/// Ends it: what this process does from here on needs no help of others. In MPI_Finalize.
void leave_place();

/// Writes down where this process runs, if it has moved; whether a process of a job that we know is awake on the same
/// core. A few loads where nothing has changed. Needs the library's lock.
bool look_for_neighbour();

/// The core that the last look found this thread on, as a number that means nothing else.
uint32_t own_core();

/// Goes to a core that this thread may use and that no process we know uses, if there is one. Of those that share a core
/// the first, by job and rank, stays. Nothing stays bound: the thread is only put there. Whether it has moved. Needs the
/// library's lock.
bool move_to_free_core();

/// This process blocks from here on; it is awake again.
void mark_self_asleep();
void mark_self_awake();

}  // namespace starling::progress
