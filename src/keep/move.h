// Moves a store to another communicator, and makes the copies again that were lost.
#pragma once

#include "keep/store.h"

namespace starling::keep {

/// What a move has done.
struct MoveResult {
    int error = MPI_SUCCESS;  ///< an error class, with its sentence set
    bool has_moved = false;   ///< whether the store belongs to the new communicator
};

/// Collective over `comm`. A store without communicator has just been created.
MoveResult move_store(KeepStore& store, MPI_Comm comm);

}  // namespace starling::keep
