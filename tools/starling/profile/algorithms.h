// Finds collective algorithms that were faster than those of the selection table, in the profile of a run that has tried several.
#pragma once

#include <string>
#include <vector>

#include "run.h"

namespace starling::analysis {

/// The best algorithm for one operation, size class and number of processes.
struct PlannedCollective {
    std::string kind, size;
    uint32_t processes = 0;
    std::string algorithm, instead_of;
    double before = 0, after = 0;  ///< seconds per call with `instead_of` and with `algorithm`
};

/// Returns the cases in which another algorithm was faster by more than the noise, sorted by the time saved.
std::vector<PlannedCollective> choose_algorithms(const Run& run);

}  // namespace starling::analysis
