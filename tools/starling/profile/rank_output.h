// The table of ranks as a part of the report, and as text for a terminal.
#pragma once

#include <string>

#include "ranks.h"
#include "report.h"

namespace starling::analysis {

/// Returns {"rows": [...], "min": {...}, "mean": {...}, "max": {...}} with at most `most` rows. Times are in seconds, amounts in bytes.
Data ranks_as_data(const Run& run, const RankTable& table, size_t most);

/// Returns the report's table of ranks as text; empty for a single process.
std::string ranks_as_text(const Data& report);

}  // namespace starling::analysis
