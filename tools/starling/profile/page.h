// A run as one HTML page that needs nothing beside it: the heat map of partners with a slider over phases, connections over time,
// the what-if, waiting.
#pragma once

#include <string>

#include "run.h"

namespace starling::analysis {

/// The page. A Refusal if starling was built without the library that draws its curves.
std::string page(const Run& run);

}  // namespace starling::analysis
