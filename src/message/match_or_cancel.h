// Cancellation of a synchronous send within a host. A word in the sender's region decides whether the message was matched or cancelled
// (transport/shm/match_or_cancel.h). The RTS says whether there is such a word; without one, a cancelling sender must ask the receiver
// (remote_cancel.h).
#pragma once

#include "message/match.h"

namespace starling::message {

/// Sender: allocates the match-or-cancel word right before the RTS is sent, unless the send blocks, so that MPI_Cancel cannot be called for
/// it. Sets `has_verdict` if the word was free.
void open_verdict(SendRequest& request);
/// Sender: cancels the message; returns false if its receiver has already matched it.
bool cancel_verdict(SendRequest& request);
/// Sender: frees the word of a message whose transfer has completed, or whose receiver has failed.
void close_verdict(SendRequest& request);

/// Receiver: matches a message for a receive or a matched probe; returns false if the message was cancelled. Repeated calls are allowed.
bool match_verdict(const link::Peer& peer, const Rts& offer, uint32_t sequence);
/// Receiver: returns whether a message was cancelled, without matching it.
bool was_cancelled(const link::Peer& peer, const Rts& offer, uint32_t sequence);

}  // namespace starling::message
