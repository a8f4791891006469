// The connection quota: the interface for the plan, which decides ahead of use which peers get connections (plan/manager.h). The plan sets
// Peer::planned, calls request_connection(), and is notified of events that it cannot foresee. A planned peer's connection is replaced only
// for one of higher priority. Among unplanned peers, traffic decides.
//
// Not thread-safe: call with the library's lock held (base/lock.h).
#pragma once

#include <cstdint>

#include "link/peer.h"

namespace starling::link {

enum class PlaceNews : uint8_t {
    slot_released,  ///< the peer's connection was closed, so the quota has room for another
    turned_away,    ///< a request of the peer for a connection was refused, because the quota is exhausted
    no_slot,        ///< the peer's traffic justifies a connection, but the quota is exhausted and no connection is worth less
};

/// Sets the one listener of the process for these events. It is called while a connection changes, so it must only note the event, and act
/// at the next poll.
using PlaceListener = void (*)(Peer& peer, PlaceNews news);
void listen_to_places(PlaceListener listener);

/// Forbids, from now on, that a connection is closed to make room for another.
void keep_connections();

}  // namespace starling::link
