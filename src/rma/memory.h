// Memory for exchange (transport/shm/shared_heap.h): what windows over it, and messages out of it, profit from on this host.
//
// All calls need the library's lock.
#pragma once

#include <cstdint>

namespace starling::rma {

/// So many bytes (not 0) at a multiple of `alignment`, a power of two. Null if there is no such memory, or MPI does not run.
void* allocate(uint64_t bytes, uint64_t alignment);
/// False if it is no memory from allocate(). The next allocate() may give it out, and neighbours have it mapped still, so the caller knows that
/// none writes there any more: of a board, that all have left it (window/lock_table.h); of the program's own, that accesses of a window over it
/// end with the window, and that messages out of it are only read.
bool free(void* memory);

}  // namespace starling::rma
