// The addresses and keys of groups, computed by each member from the members' names and their job's secret.
#pragma once

#include <cstdint>
#include <span>

#include "link/job.h"
#include "transport/multicast_groups.h"
#include "transport/transport.h"

namespace starling::multicast {

/// Returns the SipHash-2-4 of `words` under `key`. A process that sees only the result cannot find the key.
uint64_t keyed_hash(const uint64_t (&key)[2], std::span<const uint64_t> words);

/// Computes the name of the group of these members, in their order, with the secret of their lowest job. Groups of one job on the same
/// hosts share a network address (the name's place). `number` distinguishes groups with equal members. Returns an MPI error class with
/// failure_text() if the job's segment cannot be mapped.
int name_of(std::span<const link::Process> members, uint64_t number, transport::GroupName& out);

}  // namespace starling::multicast
