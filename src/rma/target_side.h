// The side that has the memory: carries out what packets ask for.
#pragma once

#include <vector>

#include "link/peer.h"
#include "rma/packets.h"

namespace starling::rma {

/// Has packets of kind `access` come in, from the library's start on: the first may be here before anything is exposed.
void listen();

/// Carries out what has come for a known region before it was exposed.
void carry_out_early(uint32_t region);

/// Begins to take packets of kind `access`; at the first region or access.
void take_accesses();

/// Does what a packet asks for, if all of it is as it has to be. Operation::refused: nothing was done; `done`, or `data`, with what
/// is to be given in `result`. Believes nothing that the packet says.
Operation do_access(const link::Packet& packet, std::vector<std::byte>& result);
/// The same, answered: what asks comes here.
void carry_out(link::Peer& peer, const link::Packet& packet);

/// Sends answers that found no room so far. Whether any went out.
bool poll_answers();

}  // namespace starling::rma
