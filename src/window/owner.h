// The side that owns the memory, and what joins the two sides.
#pragma once

#include "link/peer.h"

namespace starling::window {

/// Begins to take packets of kind `segment`; at the first segment or access.
void start_segments();

/// Every packet of kind `segment` comes here; answers go on to on_answer().
void on_segment_packet(link::Peer& peer, const link::Packet& packet);
void on_answer(link::Peer& peer, const link::Packet& packet);

/// Sends answers that found no room so far. Whether any went out.
bool poll_answers();

}  // namespace starling::window
