// The exchange format between `starling why` on several hosts: one line with everything that one host has found.
#pragma once

#include <string>
#include <vector>

#include "starling/why/look.h"

namespace starling::hang {

/// Returns one line of JSON.
std::string to_line(const std::vector<JobReport>& jobs);
/// Parses a line of to_line() and checks its wait reports. Returns false for any other text, and adds nothing then.
bool from_line(const std::string& line, std::vector<JobReport>& jobs);

/// Merges the reports of other hosts by job; jobs that are new are appended.
void merge(std::vector<JobReport>& jobs, std::vector<JobReport> more);

}  // namespace starling::hang
