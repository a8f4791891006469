// What a phase has exchanged with whom, as it ends. Both ways count, since a connection serves both, and so its two ends come to the
// same priority.
//
// Not thread-safe: within the library's lock (base/lock.h).
#pragma once

#include <vector>

#include "link/peer.h"
#include "plan/peer_traffic.h"

namespace starling::plan {

/// The transports whose connections have places: that of this host, and that to others.
enum Side : size_t { kHere, kElsewhere, kSides };
inline bool is_of(const link::Peer& peer, Side side) { return peer.can(transport::kSharesMemory) == (side == kHere); }

/// The peer that may have a connection; it is met if it wasn't. Null: its job is gone, it is dead or has
/// finalized, or it is ourselves.
link::Peer* peer_of(uint64_t job, uint32_t rank);
inline link::Peer* peer_of(const Partner& partner) { return peer_of(partner.job, partner.rank); }

struct Exchanged {
    Partners partners;                          ///< by messages both ways
    std::vector<Traffic> traffic[kSides];       ///< in the same order
    uint64_t messages = 0, on_connections = 0;  ///< of those that were sent
};

/// Of the phase that is about to end: since the last call.
Exchanged end_traffic();

inline constexpr size_t kMostPartners = 1024;  ///< more never have places

}  // namespace starling::plan
