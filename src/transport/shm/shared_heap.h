// The shared heap: memory for MPI_Alloc_mem. A process's whole heap is in one unnamed file, which neighbors (processes on the same host)
// map when they first access it. So they carry out put, get and updates there themselves, and messages from it are copied once, without the
// kernel. Untouched pages take no memory.
//
// Not thread-safe: calls need the library's lock.
#pragma once

#include <cstdint>

#include "transport/shm/region.h"

namespace starling::shm {

/// Allocates `bytes` (not 0) at a multiple of `alignment`, a power of two. The process whose region is `own` publishes the heap to its
/// neighbors. Returns null, with errno, if the system cannot provide shared memory.
void* allocate_exchanged(SegmentRegion own, uint64_t bytes, uint64_t alignment);
/// Frees memory that allocate_exchanged() returned; returns false if `memory` is not such memory.
bool free_exchanged(void* memory);

}  // namespace starling::shm
