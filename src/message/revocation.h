// Revocation of communicators (MPIX_Comm_revoke). Every pending and later operation of a revoked communicator ends with MPIX_ERR_REVOKED.
//
// A reliable broadcast notifies all members. The process that revokes sends to every member. A process that learns of it sends to the next
// living members at the distances 1, 2, 4, ..., and again after each failure. So any two neighbors among the living have exchanged the news
// in the end, even if the process that revoked has died after its first packet. If all members are processes of one job on one host, each
// learns of every death, so a process sends only after it has learned of one: otherwise the one that revoked has sent to all.
#pragma once

#include <cstdint>

#include "message/channel.h"

namespace starling::message {

/// Registers the handler of `revoke` packets.
void listen_for_revocations();

/// Revokes the communicator of a match context of plane kMembersPlane, here and at all ranks. The context's roster has all members, in an
/// order on which they agree. No effect if it is revoked already.
void revoke(MatchContext& members);
inline constexpr uint64_t kMembersPlane = 1;

/// Notifies the sender of a message that is discarded because its communicator is revoked. Call it before the sender can learn that its
/// message was received. `context`: any context id of the communicator.
void notify_of_revocation(link::Peer& peer, uint64_t context);

/// Hook that is called for each match context that was just revoked, before its operations end. Set by src/comm.
extern void (*on_revoked)(MatchContext& channel);

/// Revokes a communicator whose revocation has arrived before it was created here; call it at the end of the creation.
void revoke_if_early(MatchContext& members);

/// Notifies all ranks, for the last time if the match context is about to be destroyed.
void announce_revocation(const MatchContext& members);
/// Notifies all members of revoked communicators for the last time, because this process is about to leave for good.
void announce_last_revocations();

/// Sends the revocations that this process knows again, because the next living members have changed.
void repeat_revocations();

/// Returns MPIX_ERR_REVOKED with failure_text().
[[gnu::cold]] int why_revoked();

/// Number of the lowest bits of a context id, which hold the plane (comm/comm.h).
inline constexpr int kPlaneBits = 4;
/// Returns whether two context ids belong to one communicator: they differ only in the plane.
constexpr bool same_communicator(uint64_t a, uint64_t b) { return a >> kPlaneBits == b >> kPlaneBits; }

}  // namespace starling::message
