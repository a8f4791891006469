// The summary of `starling info`: what a user asks first about an installation, in at most 15 lines.
#pragma once

#include <nlohmann/json.hpp>

namespace starling {

/// Prints the summary. `all` has the members installation, transports, networks, functions, shmem_functions and variables of the JSON
/// output.
void print_summary(const nlohmann::ordered_json& all);

}  // namespace starling
