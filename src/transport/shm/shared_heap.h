// The shared heap: memory for MPI_Alloc_mem. All of a process's heap is in one unnamed file, which neighbors map whole when they first
// access it. So they carry out put, get and updates there themselves, and messages out of it are copied once, without the kernel. Untouched
// pages take no memory.
//
// Not thread-safe: calls need the library's lock.
#pragma once

#include <cstdint>

#include "transport/shm/region.h"

namespace starling::shm {

/// Allocates `bytes` (not 0) at a multiple of `alignment`, a power of two. The process whose region is `own` publishes the heap to its
/// neighbors. Returns null if the system has no such memory.
void* allocate_exchanged(SegmentRegion own, uint64_t bytes, uint64_t alignment);
/// Frees memory from allocate_exchanged(); returns false if it is not.
bool free_exchanged(void* memory);

}  // namespace starling::shm
