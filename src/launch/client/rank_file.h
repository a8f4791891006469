// Reads rank files: the host of each rank, line by line, in the format of Open MPI and `starling profile plan`.
#pragma once

#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// Reads lines "rank 3=host slot=1" and adds the name of each rank's host to `out`; # begins a comment. The slot, a core or socket:core, is
/// checked but not used: the binding selects the cores. Ranks must be 0, 1, … without a gap, in any order. Returns an empty string, or a
/// sentence with file, line and error.
std::string read_rank_file(const std::string& path, std::vector<std::string>& out);

/// Sets the hosts of the processes of `programs`, whose ranks are numbered one program after the other. Each host must be among those of
/// the program, unless it names none. "+n2" is the third host of the program. Returns an empty string, or a sentence that describes the
/// error.
std::string place_by(const std::string& path, const std::vector<std::string>& host_of_rank, std::vector<Program>& programs);

}  // namespace starling::launch
