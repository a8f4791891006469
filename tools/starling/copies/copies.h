// `starling info --copies`: measures how fast this machine copies between its cores, and shows how Starling would transfer messages there.
#pragma once

#include <nlohmann/json.hpp>

namespace starling {

/// Measures, for at most a few seconds. The result has the pairs of cores with their times, and the rule.
nlohmann::ordered_json measure_all_copies();

/// Prints the result of measure_all_copies() as a table per pair of cores.
void print_copies(const nlohmann::ordered_json& copies);

}  // namespace starling
