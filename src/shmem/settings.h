// The environment variables of the OpenSHMEM standard.
#pragma once

#include <cstdint>

namespace starling::shmem {

/// Bytes that a PE's symmetric heap may grow to: SHMEM_SYMMETRIC_SIZE, or where it is not set, address space enough for what a machine has.
/// MPI_ERR_ARG with failure_text() if it says something else than a size.
int heap_limit(uint64_t& bytes);

/// A size as the standard writes it: a positive decimal number, whole or not, with k, m, g or t behind it. False if it is none, or
/// beyond 2^46.
bool parse_size(const char* text, uint64_t& bytes);

/// What SHMEM_VERSION and SHMEM_INFO ask for, on standard output; by one PE.
void print_wanted();

}  // namespace starling::shmem
