// The sending side: from started sends to packets, and what the receiver's answers do.
#pragma once

#include "link/peer.h"
#include "message/protocol.h"
#include "message/request.h"

namespace starling::message {

/// The receiver has all data of the send called `serial`.
void on_fetched(link::Peer& peer, uint32_t serial);
/// The receiver wants the first `bytes` in pieces.
void on_clear_to_stream(link::Peer& peer, const ClearToStream& clear);
/// A stream to another host has something for the base path again.
void enqueue_stream(SendRequest& request);
/// The receiver copies, and asks us to do part of it.
void on_share_copy(link::Peer& peer, const Share& share);
/// Sends what is pending to a peer as far as there is room; false if something is left.
bool flush(link::Peer& peer);
/// Completes all sends to the peers of a dead job with MPI_ERR_PROC_ABORTED.
void fail_sends(link::Job& job);
/// The same for one process.
void fail_sends(link::Peer& peer);
/// Gives up sends whose receivers have called MPI_Finalize: nobody will receive them.
void drop_sends_to_finalized();
/// Visits the sends that are not complete.
void each_open_send(void (*visit)(const SendRequest& request, void* argument), void* argument);
/// Sends that are not complete, of any kind; MPI_Finalize waits for 0.
size_t open_sends();

}  // namespace starling::message
