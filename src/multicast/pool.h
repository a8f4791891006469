// The pool of groups created in advance (STARLING_MULTICAST=pool). Their members are the leaders of all hosts of the job, and they are
// tested before any communicator waits for them. A communicator takes one: the first message to the group names the communicator and its
// members, and all others leave; a new group replaces it in the pool. One process, the first member, assigns all groups, so that no two
// communicators take the same.
#pragma once

#include <cstdint>
#include <span>

#include "link/job.h"
#include "multicast/membership.h"

namespace starling::multicast {

/// Creates the pool, if there is none yet and this process leads its host.
void fill_pool();
/// Requests a pool group for the communicator with that context, which this process leads. Does not block; there may be none available.
/// `members` are sorted by name.
void request_from_pool(uint64_t context, std::span<const link::Process> members);
/// Returns the group assigned to the communicator with that context; null: none (yet).
Membership* assigned_by_pool(uint64_t context);
/// Forget a communicator that has ended, or a group that this process removes.
void forget_in_pool(uint64_t context);
void forget_in_pool(Membership& membership);
/// Returns whether this process has left a pool group and can forget it: the group serves no communicator of this process, and no
/// assignment of the group can arrive any more.
bool is_finished(const Membership& membership);

/// Handles a request from another process for one of the pool's groups.
void on_group_request(const std::byte* wish, size_t bytes);
/// Handles assignments and failures of the pool's groups. Returns whether there were any.
bool poll_pool();

}  // namespace starling::multicast
