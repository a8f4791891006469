// Manages all groups of this process: creation, sharing, and eviction.
#pragma once

#include <cstdint>
#include <span>

#include "link/job.h"
#include "multicast/membership.h"
#include "multicast/receive_queue.h"

namespace starling::multicast {

ReceiveQueue& desk();

/// Returns the group of `members`, which are sorted by name, and counts one more user; creates the group if needed. Null if it cannot be
/// created.
Membership* use(std::span<const link::Process> members, uint32_t me);
void release(Membership& membership);
/// Returns the group of `members` with that number, without counting a user. The numbers distinguish groups with equal members; use() has
/// number 0.
Membership* make_group(std::span<const link::Process> members, uint32_t me, uint64_t number);

/// Joins the group for a communicator, unless an attempt failed recently or more valuable groups use all group places of this process.
/// `others_wait`: the other members wait for the result.
void want(Membership& membership, bool others_wait = false);
/// Counts a message sent or received by the group.
inline void note_use(Membership& membership) { ++membership.value; }
/// Makes the next poll run the group, instead of the poll at its next deadline.
void check_again(Membership& membership);

/// Returns the recent average time of joining and testing a group, in ns; 0: unknown.
uint64_t cost_of_joining();

}  // namespace starling::multicast
