// Creates a report of a run as one self-contained HTML page: a heat map of partners with a slider over phases, connections over time, the
// what-if curves, waits.
#pragma once

#include <string>

#include "run.h"

namespace starling::analysis {

/// Returns the page. Throws a Refusal if starling was built without Chart.js, which draws the curves.
std::string page(const Run& run);

}  // namespace starling::analysis
