// Peers on other hosts. This process cannot see whether such a peer has ended, so it asks the daemon.
#pragma once

#include <cstdint>

#include "link/peer.h"

namespace starling::link {

/// Registers the peer: while it lives, the daemon is asked about it whenever it is silent.
void watch_liveness(Peer& peer);
void stop_asking_after(Peer& peer);

/// Returns the name of the peer's host; the peer must be on another host.
const char* host_name(const Peer& peer);

/// Marks a process, on any host, as dead or unreachable although its job continues; failure_text() has the reason.
void fail_peer(Peer& peer);
/// Returns MPI_ERR_PROC_ABORTED with the reason why the peer is dead as failure_text(); `rank` is the rank by which the caller knows it.
int why_dead(const Peer& peer, int rank);

/// Handles the daemon's reply about this peer. `error` is an MPI error class with failure_text() if the daemon does not know the peer's
/// state. `looks` is RankCell::polls of the peer, 0 if not known.
void on_located(Peer& peer, int error, uint32_t looks);

/// Asks the daemon about peers that owe an acknowledgement and from which nothing has arrived for `patience_ns`.
void query_silent_peers(uint64_t patience_ns);

/// Returns whether the peer will not receive anything any more: it has called MPI_Finalize, or has ended.
bool has_finalized(const Peer& peer);
/// The same, but false for a peer that may return (link/failure_detector.h).
bool has_finalized_for_good(const Peer& peer);

/// Returns whether everything sent to other hosts is acknowledged, except by peers that have finalized. Asks the daemon about peers that do
/// not answer.
bool all_acknowledged();

/// Notifies the peers on other hosts in MPI_Finalize, when all data is acknowledged, so that they need not ask the daemon about this
/// process. Does not wait for replies; a peer that misses the notice asks its daemon.
void notify_finalized();
void on_farewell(Peer& peer, const Packet& packet);

}  // namespace starling::link
