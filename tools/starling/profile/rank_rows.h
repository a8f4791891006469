// The timelines of the ranks as a picture of limited size: a row for one or several ranks, a column for a step of time.
#pragma once

#include "report.h"

namespace starling::analysis {

/// Returns the width of a column in seconds ("step"), the names of phases, and the rows. A row is a list of pieces with equal columns:
/// number of columns, index of the phase with most time there (-1: none), and the share of time waited in percent.
Data rank_rows(const Run& run, uint32_t ranks_per_row);

}  // namespace starling::analysis
