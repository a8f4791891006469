// Uses the hosts of a batch job (batch_hosts.h, and Slurm's here): jobs run on its hosts, and the manager's command starts the daemons where
// it can. No library of a manager is linked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/client/batch_hosts.h"
#include "launch/client/options.h"
#include "launch/common/hosts.h"

namespace starling::launch {

/// Expands "n[1-3,07],login" to its hosts, in order. Returns false if it is malformed or has more than 100,000 hosts.
bool expand_hosts(std::string_view list, std::vector<std::string>& out);

/// Expands "4(x2),1" to 4, 4, 1. Returns false if it is malformed or has more than 100,000 counts.
bool expand_counts(std::string_view list, std::vector<uint32_t>& out);

/// Returns the allocation of the Slurm job in which this process runs, with srun as agent; an empty one outside Slurm.
Allocation slurm_allocation();

/// Returns the allocation of the batch job in which this process runs, of any manager; an empty one outside a job.
Allocation find_allocation();

/// Applies the allocation if the options name no host. Sets the options' hosts, and the manager's agent unless the user has chosen one.
/// Returns an empty string, or a sentence that describes the error.
std::string use_allocation(Options& options);

}  // namespace starling::launch
