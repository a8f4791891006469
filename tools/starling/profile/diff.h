// Compares two runs of an application.
#pragma once

#include <cstdint>
#include <string>

#include "run.h"

namespace starling::analysis {

/// Returns a text for a terminal: the differences by phase and collective call site, sorted by weight, at most `top` rows. The weight of a
/// change of time is its share of the run's time; that of a change of messages or bytes is its share of all messages or bytes. Throws a
/// Refusal if the runs are of two applications.
std::string diff(const Run& before, const Run& after, uint32_t top);

}  // namespace starling::analysis
