// Who else is on this core: the places that processes of the jobs we know have written down (job/places.h).
#pragma once

#include <cstdint>

namespace starling::progress {

/// Begins to write down this process's own place. Once, after link::start().
void take_place();
/// Ends it: what this process does from here on needs no help of others. In MPI_Finalize.
void leave_place();

/// What a look at the places shows.
struct Company {
    bool neighbour;  ///< a process of a job that we know is awake here
    bool contested;  ///< one of those has found that strangers want this core
};
/// Where this thread runs, as a number that means nothing else; the quickest of looks.
uint32_t own_core();
/// Writes down that this process runs on that core, and whether it has found it contested; who else is there. A few loads
/// where nothing has changed. Needs the library's lock.
Company look_for_company(uint32_t cpu, bool contested);

/// Goes to a core that this thread may use, where no process we know is awake and no more of them sleep than share this
/// one, if there is such a core. Of those that share a core
/// the first, by job and rank, stays. Nothing stays bound: the thread is only put there. Whether it has moved. Needs the
/// library's lock.
bool move_to_free_core();

/// This process blocks from here on; it is awake again.
void mark_self_asleep();
void mark_self_awake();

}  // namespace starling::progress
