// Converts the arguments of MPI_Comm_spawn_multiple to a job.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/control_protocol.h"
#include "launch/common/job_spec.h"

namespace starling::launch {

/// Converts a spawn request to a job. With `here_only`, hosts other than this one are rejected. Returns an empty string, or a sentence that
/// describes the error.
std::string job_of(const control::SpawnRequest& request, job::JobId parent, JobSpec& out, bool here_only = true);

/// Returns the number of processes that a request asks for, at most the maximum size of a job.
size_t requested_processes(const control::SpawnRequest& request);

/// Parses a soft set such as "1,4:8" or "2:8:2" and returns the counts up to `most`, ascending. Returns false if it is malformed.
bool parse_soft(std::string_view text, uint32_t most, std::vector<uint32_t>& out);

}  // namespace starling::launch
