// Reads the hosts and slots of a batch job from the variables and files of its manager: PBS, LSF, Grid Engine, Cobalt and Flux. Slurm's
// are in allocation.h. No library of a manager is linked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/common/hosts.h"

namespace starling::launch {

/// The hosts that a manager has given to the batch job in which this process runs.
struct Allocation {
    std::string manager;           ///< the manager's name; empty: this process runs in no batch job
    std::vector<HostSlots> hosts;  ///< empty if there is a problem
    std::string agent;             ///< command that runs another command on a host of the job; empty: ssh
    std::string problem;           ///< sentence about a job whose hosts can't be understood
};

/// Each function returns the allocation if the environment shows a job of its manager, and an empty one otherwise.
Allocation lsf_allocation();
Allocation pbs_allocation();
Allocation grid_engine_allocation();
Allocation cobalt_allocation();
Allocation flux_allocation();

/// Parses Flux's description of resources (R, a JSON object of RFC 20): the cores of a host are its slots. Returns an empty string, or a
/// sentence that describes the error.
std::string parse_flux_resources(std::string_view text, std::vector<HostSlots>& out);

/// Returns the variable's value, or nullptr if it is not set or empty.
const char* manager_variable(const char* name);

}  // namespace starling::launch
