// Peers on other hosts: where they are, whether they live, and the sessions that bring packets to them. A process
// in a universe of one host opens no socket.
#pragma once

#include <cstdint>

#include "link/peer.h"
#include "transport/ip/endpoint.h"

namespace starling::link {

/// This process on the network; null while it has no need of it.
extern ip::Endpoint* network;

/// Opens the network, if it isn't open, and puts this process's port into its own word of the address table. Constant
/// time; talks to no one.
int open_network();

/// Has other hosts learn, when they ask, whether this process has called MPI_Finalize.
void publish_state(bool finalized);

/// Readable when poll_remote() would find something; -1 while the network is not open.
int network_descriptor();
/// When poll_remote() must be called though nothing is readable; ns, UINT64_MAX: never.
uint64_t network_deadline();

/// Gives a new peer on another host its session, and begins to find out where it is if that is not known.
int attach_session(Peer& peer);
/// The host of a peer on another one.
const char* host_name(const Peer& peer);
/// Ends what we have with a peer that is gone.
void drop_session(Peer& peer);

/// The job is gone and about to be forgotten: so is what the endpoint remembers of its processes.
void forget_sessions(const Job& job);

/// A process is gone, or can't be reached, though its job goes on; failure_text() says what happened. On any host.
void fail_peer(Peer& peer);
/// MPI_ERR_PROC_ABORTED with the reason why the peer is dead as failure_text(); `rank` is how the caller calls it.
int why_dead(const Peer& peer, int rank);

/// As reserve() and commit(), for peers on other hosts.
bool reserve_remote(Peer& peer, uint32_t bytes, Slot& slot);
void commit_remote(Peer& peer, uint32_t bytes);
uint32_t remote_piece_limit(const Peer& peer);

/// While one lives, packets wait so that several go out together.
struct NetworkBatch {
    NetworkBatch() {
        if (network) network->begin_batch();
    }
    ~NetworkBatch() {
        if (network) network->end_batch();
    }
    NetworkBatch(const NetworkBatch&) = delete;
};

/// Receives, repeats, and takes the daemon's answers. `busy`: packets come by shared memory meanwhile, so the sockets are
/// not looked at every time. Whether anything came, or there is room for what waited.
bool poll_remote(bool busy);

/// The same, whether or not it is time to: for what has come before a peer's end and must not be overlooked.
bool poll_sockets();

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

/// This process will not poll for a long time, or never again: acknowledgements that were held back go out.
void flush_network();

/// In MPI_Finalize, when all is acknowledged: tells the peers on other hosts, so that they need not ask the daemon what
/// has become of us. Waits for no answer; who misses it asks.
void say_farewell();
void on_farewell(Peer& peer);

}  // namespace starling::link
