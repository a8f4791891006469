// The receiving side: from packets to completed receives.
#pragma once

#include "link/peer.h"
#include "message/match.h"

namespace starling::message {

/// Sets link's upcalls; once, before the first poll.
void start();

/// A new channel takes the messages that came for it before it was known here.
void adopt_orphans(MatchContext& channel);

/// Before a channel goes whose context may be used again: what has come for it waits for the next one with that context.
void orphan_messages(MatchContext& channel);

/// A message that nobody will receive, and that is in no queue any more. Takes `message` out of the pool.
void throw_away(Unexpected& message);

/// Takes out of its queue a message that has been offered with this number and that neither a receive nor a matched probe has taken.
enum class Withdrawn : uint32_t { yes, was_taken, has_not_come };
Withdrawn withdraw(const link::Peer& peer, uint64_t context, uint32_t sequence);

/// A rank of the channel that has failed, as far as is known here; -1: none.
int failed_member(const MatchContext& channel);
/// MPI_ERR_PROC_ABORTED; if there is one, failure_text() says which and why.
[[gnu::cold]] int why_member_failed(MatchContext& channel);

/// Gives an arrived message to a receive: copies, or begins to fetch. Takes `message` out of the pool.
void receive_unexpected(ReceiveRequest& request, Unexpected& message);

/// Fails everything that waits for processes of a job that is gone.
void fail_job(link::Job& job);
/// The same for one process on another host that can't be reached, while its job goes on; failure_text() says why.
void fail_peer(link::Peer& peer);

}  // namespace starling::message
