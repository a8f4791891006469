// What `starling why` hears from itself on other hosts: one line for all it has seen there.
#pragma once

#include <string>
#include <vector>

#include "starling/why/look.h"

namespace starling::hang {

/// One line of JSON.
std::string to_line(const std::vector<JobReport>& jobs);
/// What to_line() has written; false, and nothing added, if it is anything else. The accounts in it are checked.
bool from_line(const std::string& line, std::vector<JobReport>& jobs);

/// Adds what was seen elsewhere to what is known of the same job; other jobs come behind.
void merge(std::vector<JobReport>& jobs, std::vector<JobReport> more);

}  // namespace starling::hang
