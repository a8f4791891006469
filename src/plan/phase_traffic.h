// The traffic of a phase that ends, by partner. Messages of both directions count, because a connection serves both. So both ends compute
// the same priority.
//
// Not thread-safe: requires the library's lock (base/lock.h).
#pragma once

#include <vector>

#include "link/peer.h"
#include "plan/peer_traffic.h"

namespace starling::plan {

/// The transports with a connection quota: kHere is the one within this host, kElsewhere the one to other hosts.
enum TransportSide : size_t { kHere, kElsewhere, kSides };
inline bool is_of(const link::Peer& peer, TransportSide side) {
    return peer.supports(transport::kSharesMemory) == (side == kHere);
}

/// Returns the peer of a process to which a connection is possible, and creates it if needed. Returns null if its job has ended, the
/// process is dead or has finalized, or it is this process.
link::Peer* peer_of(uint64_t job, uint32_t rank);
inline link::Peer* peer_of(const Partner& partner) { return peer_of(partner.job, partner.rank); }

struct ExchangedTraffic {
    Partners partners;                          ///< partners of the phase; their priority is the number of messages both ways
    std::vector<PeerTraffic> traffic[kSides];   ///< traffic by transport, in the order of `partners`
    uint64_t messages = 0, on_connections = 0;  ///< number of messages sent, and how many of them were sent on connections
};

/// Returns the traffic since the last call. Call it when a phase ends.
ExchangedTraffic end_traffic();

inline constexpr size_t kMostPartners = 1024;  ///< maximum number of partners of a phase that get connections by plan

}  // namespace starling::plan
