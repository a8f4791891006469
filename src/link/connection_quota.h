// The places for connections, for whoever says ahead of use which peers shall have them (plan/manager.h): sets Peer::planned, asks by
// request_connection(), and hears of what a plan can't know. A planned peer's connection gives way to one of higher priority
// alone; which of those that are in no plan have connections stays as traffic decides.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <cstdint>

#include "link/peer.h"

namespace starling::link {

enum class PlaceNews : uint8_t {
    let_go,       ///< the peer's place is free
    turned_away,  ///< the peer has asked for a connection, and there was no place for it
};

/// One, for good. It is called from within what changes connections: it notes the news, and acts upon them at the next poll.
using PlaceListener = void (*)(Peer& peer, PlaceNews news);
void listen_to_places(PlaceListener listener);

/// From now on no connection gives way to another.
void keep_connections();

}  // namespace starling::link
