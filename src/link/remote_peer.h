// Peers whose end nobody here sees, as they are on other hosts: whether they live is asked of the daemon.
#pragma once

#include <cstdint>

#include "link/peer.h"

namespace starling::link {

/// Has the daemon asked after the peer when it is silent, until it is dead.
void ask_after(Peer& peer);
void stop_asking_after(Peer& peer);

/// The host of a peer on another one.
const char* host_name(const Peer& peer);

/// A process is gone, or can't be reached, though its job goes on; failure_text() says what happened. On any host.
void fail_peer(Peer& peer);
/// MPI_ERR_PROC_ABORTED with the reason why the peer is dead as failure_text(); `rank` is how the caller calls it.
int why_dead(const Peer& peer, int rank);

/// The daemon has answered about this peer: `error` is an MPI error class with failure_text() if it could not tell, `looks`
/// the number in its cell (job::RankCell), 0 if that is not known.
void on_located(Peer& peer, int error, uint32_t looks);

/// Asks the daemon after peers that owe an acknowledgement and have given no sign of life for `patience_ns`.
void ask_after_silent_peers(uint64_t patience_ns);

/// Whether nobody will take what is sent to the peer any more: it has called MPI_Finalize, or is gone.
bool has_finalized(const Peer& peer);

/// Whether all that was sent to other hosts is acknowledged, but for what was sent to those who have finalized. Asks
/// the daemon about who does not answer.
bool all_acknowledged();

/// In MPI_Finalize, when all is acknowledged: tells the peers on other hosts, so that they need not ask the daemon what
/// has become of us. Waits for no answer; who misses it asks.
void say_farewell();
void on_farewell(Peer& peer, const Packet& packet);

}  // namespace starling::link
