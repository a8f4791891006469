// Memory for exchange: what MPI_Alloc_mem gives. All of a process lies in one file without a name, which neighbours map whole
// when they first need some of it; so put, get and updates there are done by whoever wants them, and messages out of it are copied
// once, without the kernel. What is not touched takes no memory.
//
// Not thread-safe: calls need the library's lock.
#pragma once

#include <cstdint>

#include "transport/shm/region.h"

namespace starling::shm {

/// So many bytes (not 0) at a multiple of `alignment`, a power of two; the process whose region is `own` shows them to its neighbours. Null if
/// the system has no such memory.
void* allocate_exchanged(Region own, uint64_t bytes, uint64_t alignment);
/// False if it is none of those.
bool free_exchanged(void* memory);

}  // namespace starling::shm
