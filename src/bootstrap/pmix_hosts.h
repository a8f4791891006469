// The hosts of a job's ranks according to PMIx, in the text form that our plugin returns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_description.h"

namespace starling::bootstrap {

/// Parses "name:rank,rank,…;" once per host. Returns false unless every rank of `size` is on exactly one host. Hosts without ranks are left
/// out; the others keep their order.
bool parse_pmix_hosts(std::string_view text, uint32_t size, std::vector<job::Placement>& placements,
                      std::vector<std::string>& hosts);

}  // namespace starling::bootstrap
