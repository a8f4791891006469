// Allocates from the shared heap (transport/shm/shared_heap.h), which makes windows over this memory, and messages sent from it, faster
// within this host.
//
// All calls need the library's lock.
#pragma once

#include <cstdint>

namespace starling::rma {

/// Returns `bytes` bytes (not 0), aligned to `alignment`, a power of two. Returns null if there is no such memory, or MPI is not running.
void* allocate(uint64_t bytes, uint64_t alignment);
/// Frees memory from allocate(); returns false for other memory. Neighbours keep the memory mapped, and the next allocate() may return it,
/// so the caller guarantees that no process writes to it any more. For a lock table this holds when all processes have left it
/// (window/lock_table.h). For the program's memory it holds because accesses end with their window, and messages sent from it are only
/// read.
bool free(void* memory);

}  // namespace starling::rma
