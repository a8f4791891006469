// Datatypes at the target, flattened where the access is made: so the owner needs to know predefined types only.
#pragma once

#include "rma/access.h"

namespace starling::rma {

/// The stretch of the region that holds the data of `there` from packed position `from` on, at most `room` bytes of data. With an
/// `element`, whole elements; those with gaps in or behind them lie one by one, or in a row where the type is the element itself.
/// False if there is no room for one.
bool next_run(const RemoteBlock& there, const Datatype* element, uint64_t from, uint64_t room, Run& run);

}  // namespace starling::rma
