// The name of the process's current phase, in the unused end of the counters' page, where `starling top` reads it.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/counters.h"

namespace starling {

inline constexpr size_t kPhaseNameBytes = 48, kPhaseNameOffset = kCounterPage - kPhaseNameBytes;

/// Stores the name in this process's page, shortened if it is long. A reader may see parts of two names for a moment.
void publish_phase_name(std::string_view name);

/// Returns the name in a page that any process may have written: up to its end, without a terminator, possibly with control characters.
std::string_view phase_name_in(const Counters& page);

}  // namespace starling
