// The data of a report on a run. The text, the page and `--json` of `starling profile show` all show these data; docs/profile.md describes
// the fields.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "run.h"

namespace starling::analysis {

using Data = nlohmann::ordered_json;

struct ReportWish {
    size_t rows = std::numeric_limits<size_t>::max();   ///< maximum number of entries of each list
    size_t ranks = std::numeric_limits<size_t>::max();  ///< maximum number of rows of the table of ranks
    std::string phase;                                  ///< name of the only phase to report; empty: all
    bool timeline = true;                               ///< whether the report has the timeline of each rank
};

/// Returns the report. Throws a Refusal if there is no phase of that name.
Data report(const Run& run, const ReportWish& wish = {});

}  // namespace starling::analysis
