// Fetches a block from a process that keeps it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "keep/store.h"

namespace starling::keep {

/// The block that this process wants, and where.
struct FetchedBlock {
    int owner = MPI_PROC_NULL;
    int64_t version = STARLING_KEEP_LATEST;  ///< in the end: the block's version
    void* address = nullptr;                 ///< null: only the length is wanted
    size_t bytes = 0;                        ///< size of the memory; in the end: length of the block
};

/// Collective over the store's communicator. Returns MPI_SUCCESS or an error class, with its sentence set.
int fetch_block(KeepStore& store, const std::string& name, FetchedBlock& wanted);

}  // namespace starling::keep
