// Parses the values of --bind-to, --map-by and --rank-by in the forms of Open MPI and MPICH.
#pragma once

#include <string>
#include <vector>

#include "launch/common/job_spec.h"
#include "launch/common/processor_placement.h"

namespace starling::launch {

/// The order in which ranks are numbered over hosts.
enum class HostRanking {
    mapped,  ///< in the order in which they are placed
    slot,    ///< host by host
    node,    ///< one rank per host in turn
};

/// The placement that a command line asks for.
struct PlacementOptions {
    Binding binding = Binding::automatic;
    ProcessorPlacement processors;
    HostRanking ranking = HostRanking::mapped;
    bool nolocal = false;            ///< true: --map-by ...:NOLOCAL
    bool sequential = false;         ///< true: --map-by seq
    std::vector<std::string> notes;  ///< one sentence for each part of a value that has no effect
};

/// These return an empty string, or a sentence that describes the error.
std::string read_bind_to(const std::string& value, PlacementOptions& out);
std::string read_map_by(const std::string& value, Program& program, PlacementOptions& out);
std::string read_rank_by(const std::string& value, PlacementOptions& out);
std::string read_cpu_list(const std::string& option, const std::string& value, PlacementOptions& out);

/// Combines the options of the whole command line, in whatever order they came: sets the binding, the variable that the hosts' launchers
/// read, and the order of ranks.
std::string finish_placement(PlacementOptions& placement, std::vector<Program>& programs);

}  // namespace starling::launch
