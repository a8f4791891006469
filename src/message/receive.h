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

/// Returns whether this process knows of any process that has failed, or of a revocation.
bool any_failure();
/// Returns a rank of the match context that has failed, as far as this process knows; -1: none.
int failed_member(const MatchContext& channel);
/// Returns MPI_ERR_PROC_ABORTED for an operation that ends because a member of the match context has failed. failure_text() then says which
/// one and why, if it is known.
[[gnu::cold]] int why_member_failed(MatchContext& channel);

/// Returns whether the message of a receive cannot arrive any more (message/senders.h).
bool is_in_vain(const ReceiveRequest& request);
/// Ends the receives whose messages cannot arrive any more, or suspends them.
void fail_receives();
/// Returns the error of an operation for which sender_ended(channel, source) is true, with failure_text().
[[gnu::cold]] int why_sender_ended(MatchContext& channel, int source);
/// Returns whether the context id was retired (message/closed_contexts.h).
bool is_retired(uint64_t context);

/// Adds a function that is called after processes have failed and all requests that waited for them have ended. It may be added before.
void watch_failures(void (*watcher)());

/// Ends the posted receives of a revoked match context and drops its unreceived messages.
void end_receives_of(MatchContext& channel);

/// Passes an arrived message to a receive: copies its data, or starts the transfer. Returns `message` to the pool.
void receive_unexpected(ReceiveRequest& request, Unexpected& message);

/// Fails every request that waits for a process of a job that has ended.
void fail_job(link::Job& job);
/// Fails every request that waits for a process on another host that is unreachable, although its job continues; failure_text() has the
/// reason.
void fail_peer(link::Peer& peer);

}  // namespace starling::message
