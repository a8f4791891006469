// What changed from one run to another.
#pragma once

#include <cstdint>
#include <string>

#include "run.h"

namespace starling::analysis {

/// A text for a terminal: per phase and collective call what is otherwise, what matters most first, at most `top` rows. A change of
/// time matters by its share of the run's time, one of messages or bytes by theirs. A Refusal if these are two applications.
std::string diff(const Run& before, const Run& after, uint32_t top);

}  // namespace starling::analysis
