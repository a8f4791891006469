// What a connection is worth beyond the phase that is going on: it stays open until its place is needed. For plans that are learned and
// for those that the analyzer makes.
#pragma once

#include <algorithm>

#include "base/config.h"
#include "base/live.h"

namespace starling::plan {

/// Each phase counts so much of the one before it.
inline constexpr double kHorizon = 0.75;
/// To have it then is worth no more than opening it then costs (STARLING_REPLACE_MESSAGES), so many times over.
inline constexpr double kMostCosts = 4;

/// In messages, now; `then`: from the next phase on, as seen there.
inline double worth_later(double then) {
    return kHorizon * std::min(kMostCosts * static_cast<double>(live(config().replace_messages)), then);
}

}  // namespace starling::plan
