// The receiving side: turns packets into completed receives.
#pragma once

#include "link/peer.h"
#include "message/match.h"

namespace starling::message {

/// Sets link's upcalls. Call it once, before the first poll.
void start();

/// Moves the orphans of a new match context, which arrived before it was known here, into its queues.
void adopt_orphans(MatchContext& channel);

/// Turns the unexpected messages of a match context into orphans, before it is destroyed and its id may be used again. The next context
/// with that id adopts them.
void orphan_messages(MatchContext& channel);

/// Drops a message that no receive will take and that is in no queue. Returns `message` to the pool.
void throw_away(Unexpected& message);

/// Removes an RTS with this sequence number from its queue, unless a receive or a matched probe has taken it.
enum class Withdrawn : uint32_t { yes, was_taken, has_not_come };
Withdrawn withdraw(const link::Peer& peer, uint64_t context, uint32_t sequence);

/// Returns a failed rank of the match context, as far as this process knows; -1: none.
int failed_member(const MatchContext& channel);
/// Returns MPI_ERR_PROC_ABORTED; if a member has failed, failure_text() says which one and why.
[[gnu::cold]] int why_member_failed(MatchContext& channel);

/// Passes an arrived message to a receive: copies its data, or starts the transfer. Returns `message` to the pool.
void receive_unexpected(ReceiveRequest& request, Unexpected& message);

/// Fails every request that waits for a process of a job that has ended.
void fail_job(link::Job& job);
/// Fails every request that waits for one unreachable process on another host, while its job continues; failure_text() has the reason.
void fail_peer(link::Peer& peer);

}  // namespace starling::message
