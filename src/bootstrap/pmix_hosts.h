// Where PMIx says the ranks of a job are, as our plugin hands it on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::bootstrap {

/// Reads "name:rank,rank,…;" once per host. False unless every rank of `size` is on exactly one host. Hosts
/// without ranks are left out; the others keep their order.
bool parse_pmix_hosts(std::string_view text, uint32_t size, std::vector<job::Placement>& placements,
                      std::vector<std::string>& hosts);

}  // namespace starling::bootstrap
