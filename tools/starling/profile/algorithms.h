// Which collective algorithms were better than what the table takes, in a profile of a run that has tried some.
#pragma once

#include <string>
#include <vector>

#include "run.h"

namespace starling::analysis {

/// For calls of an operation of a size class on communicators of so many processes.
struct PlannedCollective {
    std::string kind, size;
    uint32_t processes = 0;
    std::string algorithm, instead_of;
    double before = 0, after = 0;  ///< seconds of a call
};

/// Where one was better by more than the noise; what saves most first.
std::vector<PlannedCollective> choose_algorithms(const Run& run);

}  // namespace starling::analysis
