// Groups made ahead (STARLING_MULTICAST=pool): of the leaders of all hosts of the job, tested while nobody waits for them. A communicator
// takes one: the first message that goes to the group says for whom it is, and those who are not in it leave; another is made in
// its place. Who takes which is up to one process, the first of them, so no two take the same.
#pragma once

#include <cstdint>
#include <span>

#include "link/job.h"
#include "multicast/membership.h"

namespace starling::multicast {

/// Makes the pool, if there is none yet and this process leads its host.
void fill_pool();
/// This process leads the communicator with the context: has it take a group, if there is one that it can have. Waits for nobody. `members`
/// ascend by name.
void take_from_pool(uint64_t context, std::span<const link::Process> members);
/// The group that the communicator has been given; null: none, or not yet.
Membership* given_by_pool(uint64_t context);
/// The communicator is gone, or the group.
void forget_in_pool(uint64_t context);
void forget_in_pool(Membership& membership);
/// Whether nothing more concerns this process that comes by the group of the pool: it was given to others, or to a communicator that has
/// ended; or it was given up here, and it is known that nobody has taken it before.
bool is_over(const Membership& membership);

/// Groups of the pool: somebody asks for one, and what has become of them. Whether anything happened.
void on_wish(const std::byte* wish, size_t bytes);
bool poll_pool();

}  // namespace starling::multicast
