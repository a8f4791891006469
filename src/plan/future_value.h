// The value of a connection beyond the current phase: it stays open until its place is needed. Used for plans that are learned and for
// those that the analyzer makes.
#pragma once

#include <algorithm>

#include "base/config.h"
#include "base/live.h"

namespace starling::plan {

/// The weight of a phase relative to the one before it.
inline constexpr double kHorizon = 0.75;
/// Upper limit of the value of having a connection later, in multiples of the cost of opening it then (STARLING_REPLACE_MESSAGES).
inline constexpr double kMostCosts = 4;

/// Returns the present value in messages of a connection that is worth `then` messages from the next phase on.
inline double worth_later(double then) {
    return kHorizon * std::min(kMostCosts * static_cast<double>(live(config().replace_messages)), then);
}

}  // namespace starling::plan
