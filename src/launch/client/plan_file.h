// A plan as a file: JSON that people can read (docs/plan.md), made by `starling profile plan` or by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/common/job_spec.h"
#include "launch/common/plan.h"

namespace starling::launch {

/// Reads the text of a plan. Returns an empty string, or the sentence that tells what is wrong and where; `out` is then unspecified.
std::string parse_plan(std::string_view text, Plan& out);

/// Reads the file, and holds it against what is to be started. The sentence names the file.
std::string read_plan(const std::string& path, const std::vector<Program>& programs, Plan& out);

}  // namespace starling::launch
