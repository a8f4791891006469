// Memory that a process lends to a group: pieces of its region of the job segment, which every process on the
// machine that knows the place can map. For the node stage of collectives.
#pragma once

#include <cstddef>
#include <cstdint>

#include "link/job.h"

namespace starling::link {

/// A piece of some process's area. Means the same in every process, so it can be sent.
struct SharedPiece {
    uint64_t offset = 0;  ///< in the owner's area
    uint64_t bytes = 0;   ///< 0: none
};

/// Takes a piece of this process's own area: zeroed, 64-byte aligned. `bytes` 0 in the result if none is left: then
/// do without. Untouched pages cost nothing, so ask for what may be needed.
SharedPiece allocate_shared(uint64_t bytes);

/// Gives a piece of this process's own area back. Nobody may touch it any more.
void free_shared(const SharedPiece& piece);

/// Where a piece of `owner`'s area lies in this process. nullptr with failure_text() if its job is gone. Valid as long
/// as the process lives, whether or not the owner does.
std::byte* map_shared(const Process& owner, const SharedPiece& piece);

}  // namespace starling::link
