// Uses the hosts of a Slurm allocation: jobs run on its hosts, and their daemons are started through srun. All information comes from
// environment variables; no library of Slurm is linked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/client/options.h"
#include "launch/common/hosts.h"

namespace starling::launch {

/// Expands "n[1-3,07],login" to its hosts, in order. Returns false if it is malformed or has more than 100,000 hosts.
bool expand_hosts(std::string_view list, std::vector<std::string>& out);

/// Expands "4(x2),1" to 4, 4, 1. Returns false if it is malformed or has more than 100,000 counts.
bool expand_counts(std::string_view list, std::vector<uint32_t>& out);

/// Returns the hosts and slots of the Slurm allocation in which this process runs; empty outside an allocation. Sets `problem` to a
/// sentence if the allocation can't be parsed.
std::vector<HostSlots> slurm_hosts(std::string& problem);

/// Applies the allocation if the options name no host, and the allocation has several hosts or a host other than this one. Sets the
/// options' hosts, and srun as the agent unless the user has chosen one. Returns an empty string, or a sentence that describes the error.
std::string use_allocation(Options& options);

}  // namespace starling::launch
