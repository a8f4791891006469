// Rendezvous, the sender's side: sends the RTS of a long or synchronous message, which then waits in memory until its receiver has the
// data. The receiver chooses the protocol (table.h).
#pragma once

#include "link/peer.h"
#include "message/protocol/packets.h"
#include "message/protocol/protocol.h"
#include "message/request.h"

namespace starling::message::rendezvous {

/// Registers the send under a new request id, by which the receiver refers to it.
void list(SendRequest& request);
/// Sends the RTS, and perhaps the first fragments with it. Returns false if there is no room.
bool put(SendRequest& request);

/// Returns the message with this request id if its RTS was sent to that peer and the transfer has not started; otherwise nullptr.
SendRequest* find(const link::Peer& peer, uint32_t serial);
/// Returns the message to that peer with this request id, in any state; nullptr if there is none.
SendRequest* find_any(const link::Peer& peer, uint32_t serial);
/// Completes a message that was registered by list() and is in no queue.
void finish(SendRequest& request, int error);
/// Replaces the registered request with this id by another.
void replace(uint32_t serial, SendRequest& by);

/// Visits the registered messages; the visitor may finish the visited one.
void each(void (*visit)(SendRequest& request, void* argument), void* argument);
template <class F>
void each(F visit) {
    each([](SendRequest& request, void* f) { (*static_cast<F*>(f))(request); }, &visit);
}

}  // namespace starling::message::rendezvous
