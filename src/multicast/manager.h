// All groups of this process: which there are, who shares one, which has to go.
#pragma once

#include <cstdint>
#include <span>

#include "link/job.h"
#include "multicast/membership.h"
#include "multicast/receive_queue.h"

namespace starling::multicast {

ReceiveQueue& desk();

/// The group of these members, which ascend by name, with one user more; made if there is none. Null: there can't be one.
Membership* use(std::span<const link::Process> members, uint32_t me);
void release(Membership& membership);
/// The group with that number of these members (use() has 0), without a user.
Membership* make_group(std::span<const link::Process> members, uint32_t me, uint64_t number);

/// A communicator wants it: joins, if it is worth a place. `others_wait`: the other members do not go on before they know whether.
void want(Membership& membership, bool others_wait = false);
/// Something was sent or received.
inline void note_use(Membership& membership) { ++membership.value; }
/// Has the next poll look at the group.
void look_again(Membership& membership);

/// What joining and testing took the last times, ns; 0: not known.
uint64_t cost_of_joining();

}  // namespace starling::multicast
