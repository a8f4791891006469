// What a batch system has given to mpiexec: in an allocation of Slurm's, jobs use its hosts, and their
// daemons are started through srun. Nothing of Slurm is linked: it tells by the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "launch/client/options.h"
#include "launch/common/hosts.h"

namespace starling::launch {

/// Reads "n[1-3,07],login" as its hosts, in order. False if it is no such list, or one of more than 100,000
/// hosts.
bool expand_hosts(std::string_view list, std::vector<std::string>& out);

/// Reads "4(x2),1" as 4, 4, 1. False if it is no such list, or one of more than 100,000 counts.
bool expand_counts(std::string_view list, std::vector<uint32_t>& out);

/// The hosts and slots of the Slurm allocation in which this process runs; empty if it runs in none.
/// `problem` gets a sentence if there is one that can't be understood.
std::vector<HostSlots> slurm_hosts(std::string& problem);

/// If no host is named and there is an allocation of several hosts, or of another than this: names its
/// hosts, and srun as the agent unless the user has chosen one. Returns an empty string, or the sentence
/// that tells what is wrong.
std::string use_allocation(Options& options);

}  // namespace starling::launch
