// Where the processes of a job go. Decided in one place, with what was placed before in mind; pure, so that it is
// tested without any host.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/common/job_spec.h"

namespace starling::launch {

/// A host of the universe as placement sees it.
struct Room {
    uint32_t slots = 1;   ///< processes that have room
    uint32_t placed = 0;  ///< processes of all jobs that are there now
    bool usable = true;   ///< it is up
};

/// What one command of a job asks for.
struct PlacementRequest {
    uint32_t count = 1;
    Mapping mapping = Mapping::slot;
    uint32_t per_host = 0;        ///< so many on a host before the next one is taken; 0: by its slots
    std::vector<uint32_t> hosts;  ///< indices into the universe, in the order to be used; empty: all
    std::vector<uint32_t> slots;  ///< of these hosts, for this job; 0: the universe's word. Empty: for all
    bool least_loaded = false;    ///< a spawn: the emptiest hosts first
    /// Where a rank file wants each, as a place in `hosts`; the other members then say nothing. Empty: without any.
    std::vector<uint32_t> fixed;
};

/// The host of each process, and the universe's rooms updated with them. More processes than slots wrap around evenly
/// instead of failing. Empty if no host is usable, or one of those that a rank file wants is not.
std::vector<uint32_t> place(const PlacementRequest& request, std::vector<Room>& universe);

/// Turns the placements' host numbers, which are the universe's, into those of a table that has only the hosts in use;
/// returns these, the universe's numbers in order of their first rank.
std::vector<uint32_t> hosts_in_use(std::vector<uint32_t>& host_of_rank);

}  // namespace starling::launch
