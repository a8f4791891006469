// The value of a connection in later phases: it stays open until another connection takes its slot. Used for plans that are learned at run
// time and for those that the analyzer makes from a profile.
#pragma once

#include <algorithm>

#include "base/config.h"
#include "base/live.h"

namespace starling::plan {

/// Weight of the messages of each phase relative to the phase before it.
inline constexpr double kHorizon = 0.75;
/// Upper limit of the value of having a connection in a later phase, in multiples of the cost of opening it then
/// (STARLING_REPLACE_MESSAGES).
inline constexpr double kMostCosts = 4;

/// Returns the value, in messages, that a connection has now if it will be worth `then` messages from the next phase on.
inline double worth_later(double then) {
    return kHorizon * std::min(kMostCosts * static_cast<double>(live(config().replace_messages)), then);
}

}  // namespace starling::plan
