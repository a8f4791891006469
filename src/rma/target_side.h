// The target side of RMA: carries out the accesses that arrive as packets.
#pragma once

#include <vector>

#include "link/peer.h"
#include "rma/packets.h"

namespace starling::rma {

/// Registers the handler of `access` packets, at the library's start: the first packet may arrive before any region is exposed.
void listen();

/// Carries out the accesses that arrived for a region before it was exposed or had its secret.
void carry_out_stored(uint32_t region);

/// Registers the poller that carries out accesses; called at the first region or access.
void handle_accesses();

/// Carries out a request after checking all its fields. Returns `refused` if nothing was done; otherwise `done`, or `data` with the result
/// in `result`.
AccessOperation do_access(const link::Packet& packet, std::vector<std::byte>& result);
/// Carries out a request packet and sends the answer.
void carry_out(link::Peer& peer, const link::Packet& packet);

/// Sends answers for which the path to the peer had no space before. Returns whether any was sent.
bool poll_answers();

}  // namespace starling::rma
