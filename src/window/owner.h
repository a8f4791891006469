// The side that owns the memory, and what joins the two sides.
#pragma once

#include "link/peer.h"

namespace starling::window {

/// Begins to take packets of kind `access`; at the first exposure or access.
void start_accesses();

/// Every packet of kind `access` comes here; answers go on to on_answer().
void on_access_packet(link::Peer& peer, const link::Packet& packet);
void on_answer(link::Peer& peer, const link::Packet& packet);

/// Sends answers that found no room so far. Whether any went out.
bool poll_answers();

}  // namespace starling::window
