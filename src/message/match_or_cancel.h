// A synchronous message within a host is either matched or cancelled, as a word of its sender says (transport/shm/match_or_cancel.h). Its offer
// tells that there is one; without it the sender that cancels asks the receiver (remote_cancel.h).
#pragma once

#include "message/match.h"

namespace starling::message {

/// The sender of a synchronous message, right before the offer goes: sets `has_verdict`, if MPI_Cancel can reach it and its word is free.
void open_verdict(SendRequest& request);
/// The sender: cancels it if its receiver has not been faster.
bool cancel_verdict(SendRequest& request);
/// The sender of one that has a word: the message has gone, or its receiver has.
void close_verdict(SendRequest& request);

/// The receiver, for a message that a receive or a matched probe is about to take: false if it was cancelled. May be asked again.
bool match_verdict(const link::Peer& peer, const Rts& offer, uint32_t sequence);
/// The receiver, for one that it looks at only.
bool was_cancelled(const link::Peer& peer, const Rts& offer, uint32_t sequence);

}  // namespace starling::message
