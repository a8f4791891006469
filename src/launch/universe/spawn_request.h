// From what MPI_Comm_spawn_multiple asks for to a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/control_protocol.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

/// A spawn request as a job; with `here_only` hosts other than this one are refused. An empty string, or the sentence that
/// tells what can't be done.
std::string job_of(const control::SpawnRequest& request, job::JobId parent, JobSpec& out, bool here_only = true);

/// How many processes a request is for; no more than a job may have, if it asks for more.
size_t processes_asked_for(const control::SpawnRequest& request);

/// The counts of a soft set like "1,4:8" or "2:8:2" that are at most `most`, ascending. False if malformed.
bool parse_soft(std::string_view text, uint32_t most, std::vector<uint32_t>& out);

}  // namespace starling::launch
