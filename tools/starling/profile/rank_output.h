// The table of ranks, as text for a terminal and as JSON for the page.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ranks.h"

namespace starling::analysis {

/// Returns the table with at most `most` ranks; empty for a single process.
std::string ranks_as_text(const Run& run, const RankTable& table, size_t most);

/// Returns {"rows": [...], "min": {...}, "mean": {...}, "max": {...}} with at most `most` rows. Times are in seconds, amounts in bytes.
nlohmann::ordered_json ranks_as_json(const Run& run, const RankTable& table, size_t most);

}  // namespace starling::analysis
