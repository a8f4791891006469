// What a group is called: numbers that its members, and nobody else, come to by themselves.
#pragma once

#include <cstdint>
#include <span>

#include "link/job.h"
#include "transport/transport.h"

namespace starling::multicast {

/// SipHash-2-4 of words, by a key that who reads the result can't guess.
uint64_t keyed_hash(const uint64_t (&key)[2], std::span<const uint64_t> words);

/// The name of the group of these members, in their order, by the secret of their lowest job. Those of one job on the same hosts have
/// a place in common. `number` tells groups with equal members apart. An MPI error class with failure_text() if the job can't be reached.
int name_of(std::span<const link::Process> members, uint64_t number, transport::GroupName& out);

}  // namespace starling::multicast
