// The environment variables of the OpenSHMEM standard.
#pragma once

#include <cstdint>

namespace starling::shmem {

/// Stores the size to which a PE's symmetric heap may grow, in bytes. It is SHMEM_SYMMETRIC_SIZE, or if that is not set, enough address
/// space for the memory of any machine. Returns MPI_ERR_ARG with failure_text() if the variable is not a size.
int heap_limit(uint64_t& bytes);

/// Parses a size in the standard's format: a positive decimal number, possibly with a fraction, followed by an optional k, m, g or t.
/// Returns false if it is not one, or is above 2^46.
bool parse_size(const char* text, uint64_t& bytes);

/// Prints the output that SHMEM_VERSION and SHMEM_INFO request; called by one PE.
void print_requested();

}  // namespace starling::shmem
