// Rendezvous, the sender's side: a long or synchronous message is offered, and waits in memory until its receiver has it. How it
// then moves is for the receiver to choose (table.h).
#pragma once

#include "link/peer.h"
#include "message/protocol/packets.h"
#include "message/protocol/protocol.h"
#include "message/request.h"

namespace starling::message::rendezvous {

/// Gives the message the serial by which its receiver names it.
void list(SendRequest& request);
/// Sends the offer, and perhaps the first pieces with it; false if there is no room.
bool put(SendRequest& request);

/// The message of this name, if it was offered to that peer and nothing has been done with it; else nullptr.
SendRequest* find(const link::Peer& peer, uint32_t serial);
/// The message of this name, in whatever state it is.
SendRequest* find_any(const link::Peer& peer, uint32_t serial);
/// Completes a message that was listed and is in no queue.
void finish(SendRequest& request, int error);
/// Puts another request in the place of one that was listed.
void replace(uint32_t serial, SendRequest& by);

/// Visits the messages that were listed; the visitor may finish the one it is given.
void each(void (*visit)(SendRequest& request, void* argument), void* argument);
template <class F>
void each(F visit) {
    each([](SendRequest& request, void* f) { (*static_cast<F*>(f))(request); }, &visit);
}

}  // namespace starling::message::rendezvous
