// Where a manager has placed the processes of a job, as PMI says it: "(vector,(0,2,4),(2,1,3))" means that
// four each go to hosts 0 and 1 and three to host 2, and so on from the front until all are placed.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::bootstrap {

/// The placement of a job of `size` ranks, its hosts numbered 0, 1, … in the order in which their first
/// rank comes; `hosts` gets how many there are. False if the text is not such a mapping or places nobody.
bool parse_process_mapping(std::string_view text, uint32_t size, std::vector<job::Placement>& out, uint32_t& hosts);

}  // namespace starling::bootstrap
