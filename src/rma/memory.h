// Memory for exchange (transport/shm/exchanged.h): what windows over it, and messages out of it, profit from on this host.
//
// All calls need the library's lock.
#pragma once

#include <cstdint>

namespace starling::rma {

/// So many bytes (not 0) at a multiple of `alignment`, a power of two. Null if there is no such memory, or MPI does not run.
void* allocate(uint64_t bytes, uint64_t alignment);
/// False if it is no memory from allocate().
bool free(void* memory);

}  // namespace starling::rma
