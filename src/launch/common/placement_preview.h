// The placement of a job that is not started (mpiexec --dry-run).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace starling::launch {

struct PlacementPreview {
    std::string problem;                 ///< reason why the job can't be placed; empty: it can
    std::vector<uint32_t> counts;        ///< number of processes of each program
    std::vector<std::string> hosts;      ///< names of the hosts with ranks, in the order of their first ranks
    std::vector<uint32_t> host_of_rank;  ///< index in `hosts` of each rank's host
    std::vector<std::string> assumed;    ///< hosts whose number of cores is not known; this host's number is assumed
};

std::string encode(const PlacementPreview& preview);
/// Returns false if `payload` is not exactly one preview, if a rank's host is not in its list, or if the counts are not those of the ranks;
/// `out` is unspecified then.
bool decode(std::string_view payload, PlacementPreview& out);

}  // namespace starling::launch
