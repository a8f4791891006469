// The numbers that the page draws as pictures: the report's numbers, combined such that their size has a limit.
#pragma once

#include "report.h"

namespace starling::analysis {

/// Returns the heat maps by phase ("frames"), the hosts' blocks of ranks, the connections over time, and the ranks' timelines.
Data pictures(const Run& run);

}  // namespace starling::analysis
