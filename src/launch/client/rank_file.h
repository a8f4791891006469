// Rank files: which rank goes to which host, line by line, as Open MPI reads them and `starling profile plan` writes them.
#pragma once

#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// Reads lines "rank 3=host slot=1" (# begins a comment; the slot, a core or socket:core, is checked and not needed: the
/// binding decides on cores) and adds the name of each rank's host to `out`. An empty string, or the sentence that tells what is
/// wrong: file, line and why; ranks have to be 0, 1, … without a gap, in any order.
std::string read_rank_file(const std::string& path, std::vector<std::string>& out);

/// Gives the processes of `programs`, which are ranked one program after the other, their hosts: among those of the program, or
/// any where it names none. "+n2" is the third host of the program. An empty string or the sentence that tells what is wrong.
std::string place_by(const std::string& path, const std::vector<std::string>& host_of_rank, std::vector<Program>& programs);

}  // namespace starling::launch
