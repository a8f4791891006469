// Compares two runs, of one program or of two builds or programs.
#pragma once

#include <cstdint>
#include <string>

#include "run.h"

namespace starling::analysis {

/// Returns a text for a terminal: the differences by phase and collective call site, sorted by weight, at most `top` rows. The weight of a
/// change of time is its share of the run's time; that of a change of messages or bytes is its share of all messages or bytes. Notes name
/// what differs from the start: program, command, version, number of processes.
std::string diff(const Run& before, const Run& after, uint32_t top);

}  // namespace starling::analysis
