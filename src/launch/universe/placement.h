// Selects the hosts for the processes of a job, taking earlier jobs into account. Has no side effects, so it is tested without hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// The load of one host of the universe.
struct HostCapacity {
    uint32_t slots = 1;   ///< number of processes that fit on the host
    uint32_t placed = 0;  ///< number of processes of all jobs on the host now
    bool usable = true;   ///< true: the host is up
};

/// The processes of one command of a job, and the rules for placing them.
struct PlacementRequest {
    uint32_t count = 1;
    Mapping mapping = Mapping::slot;
    uint32_t per_host = 0;        ///< number of processes on a host before the next host is used; 0: its slots
    std::vector<uint32_t> hosts;  ///< indices into the universe, in order of use; empty: all
    std::vector<uint32_t> slots;  ///< slots by index in `hosts`; 0: the universe\'s number. Empty: 0 for all hosts
    bool least_loaded = false;    ///< true: the emptiest hosts are used first, for a spawn
    /// The host of each process from a rank file, as an index in `hosts`; the other members are ignored then. Empty: no rank file.
    std::vector<uint32_t> fixed;
};

/// Returns the host of each process, and counts the processes in `universe`. If there are more processes than slots, they are distributed
/// evenly in further rounds. Returns an empty vector if no host is usable, or if a host of the rank file is not.
std::vector<uint32_t> place(const PlacementRequest& request, std::vector<HostCapacity>& universe);

/// Returns how many of the request's slots are free, on hosts that are usable.
uint64_t free_slots(const PlacementRequest& request, const std::vector<HostCapacity>& universe);

/// Replaces the universe's host numbers in `host_of_rank` by indices into a table of the hosts in use. Returns that table: the universe's
/// numbers, in order of their first rank.
std::vector<uint32_t> hosts_in_use(std::vector<uint32_t>& host_of_rank);

}  // namespace starling::launch
