// The sending side: from started sends to packets, and what the receiver's answers do.
#pragma once

#include "link/peer.h"
#include "message/protocol/protocol.h"
#include "message/request.h"

namespace starling::message {

/// The receiver has all data of a send.
void on_fetched(link::Peer& peer, const Fin& fetched);
/// The receiver wants the first `bytes` in pieces, or `may_write`: written into its memory.
void on_clear_to_stream(link::Peer& peer, const Cts& clear, const CtsRdmaWrite* may_write = nullptr);
/// A send that was asked for has something for its peer's queue, if it is not there.
void enqueue_asked(SendRequest& request);
/// Sends what is pending to a peer as far as there is room; false if something is left.
bool flush(link::Peer& peer);
/// Completes all sends to those who are gone with MPI_ERR_PROC_ABORTED.
void fail_sends(const Gone& gone);
/// Gives up sends whose receivers have called MPI_Finalize: nobody will receive them.
void drop_sends_to_finalized();
/// Once somebody has failed, members of collective operations may have ended before others who still send to them. True if any was given up.
bool give_up_sends_to_finalized();
/// Visits the sends that are not complete.
void each_open_send(void (*visit)(const SendRequest& request, void* argument), void* argument);
/// Sends that are not complete, of any kind; MPI_Finalize waits for 0.
size_t open_sends();
/// Completes a send that has not been asked for: its data is copied and goes on without it. As let_go(); std::bad_alloc.
void let_go_at_once(SendRequest& request);
/// How many sends MPI_Cancel has completed before they were received, as the peers see it too.
uint32_t sends_let_go();

}  // namespace starling::message
