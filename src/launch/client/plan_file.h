// Reads a plan from a JSON file that people can read (docs/plan.md), written by `starling profile plan` or by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/common/job_spec.h"
#include "launch/common/plan.h"

namespace starling::launch {

/// Parses the text of a plan. Returns an empty string, or a sentence with the error and its place; `out` is unspecified then.
std::string parse_plan(std::string_view text, Plan& out);

/// Reads the file, and checks that the plan fits the programs to be started. A single program without a number of processes gets the plan's.
/// Returns an empty string, or a sentence with the file and the error.
std::string read_plan(const std::string& path, std::vector<Program>& programs, Plan& out);

}  // namespace starling::launch
