// The PMI description of the hosts of a job's processes. In "(vector,(0,2,4),(2,1,3))", hosts 0 and 1 get four processes each and host 2
// gets three. If ranks are left, the list is applied again from the front until all are placed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::bootstrap {

/// Parses the placement of a job of `size` ranks; hosts are numbered 0, 1, … in the order of their first ranks. Sets `hosts` to their
/// number. Returns false if the text is not such a mapping or places no rank.
bool parse_process_mapping(std::string_view text, uint32_t size, std::vector<job::Placement>& out, uint32_t& hosts);

}  // namespace starling::bootstrap
