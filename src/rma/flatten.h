// Flattens datatypes of the target at the origin, so that the owner only needs to know predefined types.
#pragma once

#include "rma/access.h"

namespace starling::rma {

/// Finds the next contiguous run of the region that holds data of `there` from packed position `from` on, with at most `room` bytes of
/// data. With an `element`, a run has whole elements. Elements with gaps in or behind them form runs of one, or one long run if the type is
/// the element itself. Returns false if there is no room for one element.
bool next_run(const RemoteBlock& there, const Datatype* element, uint64_t from, uint64_t room, BlockRun& run);

}  // namespace starling::rma
