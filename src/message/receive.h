// The receiving side: turns packets into completed receives.
#pragma once

#include "link/peer.h"
#include "message/match.h"

namespace starling::message {

/// Registers this room's functions with the room link, which calls them when a packet arrives or a process fails. Call start() once, before
/// the first poll.
void start();

/// Moves the orphans of a new match context, which arrived before it was known here, into its queues.
void adopt_orphans(MatchContext& channel);

/// Turns the unexpected messages of a match context into orphans, before it is destroyed and its id may be used again. The next context
/// with that id adopts them.
void orphan_messages(MatchContext& channel);

/// Drops a message that no receive will take and that was removed from its queue. Returns `message` to the pool.
void throw_away(Unexpected& message);

/// Removes an RTS with this sequence number from its queue, unless a receive or a matched probe has taken it.
enum class Withdrawn : uint32_t { yes, already_matched, not_arrived };
Withdrawn withdraw(const link::Peer& peer, uint64_t context, uint32_t sequence);

/// Returns a rank of the match context that has failed, as far as this process knows; -1: none.
int failed_member(const MatchContext& channel);
/// Returns MPI_ERR_PROC_ABORTED for an operation that ends because a member of the match context has failed. failure_text() then says which
/// one and why, if it is known.
[[gnu::cold]] int why_member_failed(MatchContext& channel);

/// Passes an arrived message to a receive: copies its data, or starts the transfer. Returns `message` to the pool.
void receive_unexpected(ReceiveRequest& request, Unexpected& message);

/// Fails every request that waits for a process of a job that has ended.
void fail_job(link::Job& job);
/// Fails every request that waits for a process on another host that is unreachable, although its job continues; failure_text() has the
/// reason.
void fail_peer(link::Peer& peer);

}  // namespace starling::message
