// The output of `starling why --json`.
#pragma once

#include <string>
#include <vector>

#include "hang/judge.h"
#include "starling/why/look.h"

namespace starling::hang {

/// Returns one JSON object: the jobs with findings, groups of ranks, and per rank its state, a sentence and its waits as fields.
/// `verdicts`: one per job.
std::string to_json(const std::vector<JobReport>& jobs, const std::vector<Verdict>& verdicts);

}  // namespace starling::hang
