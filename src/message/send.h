// The sending side: turns started sends into packets and handles the receiver's answers.
#pragma once

#include "link/peer.h"
#include "message/protocol/protocol.h"
#include "message/request.h"

namespace starling::message {

/// Handles a FIN: the receiver has all data of a send.
void on_fetched(link::Peer& peer, const Fin& fetched);
/// Handles a CTS: sends the first `bytes` as fragments or, with `may_write`, writes them into the receiver's memory.
void on_clear_to_stream(link::Peer& peer, const Cts& clear, const CtsRdmaWrite* may_write = nullptr);
/// Puts a send whose CTS has arrived into its peer's queue, unless it is there already.
void enqueue_cleared(SendRequest& request);
/// Sends the pending packets of a peer as far as there is room. Returns false if some remain.
bool flush(link::Peer& peer);
/// Fails all sends to the failed processes with MPI_ERR_PROC_ABORTED.
void fail_sends(const Gone& gone);
/// Ends the sends of a revoked communicator for which no CTS has arrived, with MPIX_ERR_REVOKED. Their receivers get a copy of the data,
/// because they may be reading it. A send stays open if there is no memory for the copy. `context`: any context id of the communicator.
void revoke_sends(uint64_t context);
/// Completes the sends whose receivers have called MPI_Finalize and will not receive them.
void drop_sends_to_finalized();
/// Completes sends to receivers that have finalized for good, after a failure. The receivers may have been members of a failed collective
/// that ended while other members still send to them. Returns true if any send was completed.
bool abandon_sends_to_finalized();
/// Visits the incomplete sends.
void each_open_send(void (*visit)(const SendRequest& request, void* argument), void* argument);
/// Returns the number of incomplete sends of any kind; MPI_Finalize waits for 0.
size_t open_sends();
/// Completes a send that has no CTS yet with `error`: a copy of its data is sent in its place. The request may be destroyed by this call.
/// Throws std::bad_alloc.
void complete_with_copy(SendRequest& request, int error = MPI_SUCCESS);
/// Returns how many sends MPI_Cancel has completed before they were received. Peers on this host can read this count.
uint32_t abandoned_sends();

}  // namespace starling::message
