// Saves one version of this process's block, at this process and at its partner.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "keep/store.h"

namespace starling::keep {

/// Collective over the store's communicator. Returns MPI_SUCCESS or an error class, with its sentence set.
int save_block(KeepStore& store, const std::string& name, const void* address, size_t bytes, int64_t version);

}  // namespace starling::keep
