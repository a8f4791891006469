// This process's outbox (transport/shm/outbox.h), and what of it which peer has.
#pragma once

#include "link/peer.h"

namespace starling::link {

/// Once, when the own job is adopted.
void start_outbox();

/// Where to write a payload of `bytes` (at most shm::kOutboxPayload) for this peer; null if there is no room now.
std::byte* reserve_in_outbox(Peer& peer, uint32_t bytes);
/// Gives the peer what was reserved last.
shm::OutboxPlace commit_in_outbox(Peer& peer, const shm::ReadReceipt& receipt);

/// The peer will not read any more: it is dead.
void forget_in_outbox(Peer& peer);

/// Now and then while the process waits: gives the memory of an outbox that is not used back to the system.
void rest_outbox(uint64_t now);

}  // namespace starling::link
