// Agreements among the living members of a communicator (MPIX_Comm_agree, MPIX_Comm_shrink): each call is a Consensus, whose messages are
// packets of kind `ballot`.
//
// A member that has decided keeps the decision until a later agreement shows that all living members have decided too: it may have to send
// the decision again after a failure, also while it makes no MPI call on the communicator. So the agreements belong to the process, not to
// the communicator, and outlive MPI_Comm_free.
#pragma once

#include "collective/core/task.h"
#include "collective/survivors/consensus.h"
#include "comm/comm.h"

namespace starling::collective {

/// Registers the packet handler and the watch for failures. Called by src/runtime before the first poll.
void start_agreements();

/// Agrees on `flag` among the living members of both groups. Sets `flag` to the bitwise AND of all members' flags. Returns, alike on all
/// members, MPIX_ERR_PROC_FAILED if a member has failed and not all have acknowledged this. All members call it and shrink() in the same
/// order; works on a revoked communicator. References must outlive the task.
Task agree_among_living(comm::Comm& comm, int& flag);

/// Leaves the communicator's next agreement instead of voting, and does not wait for its decision. The others treat this process as failed in
/// that agreement, so agree_among_living() fails on them. They do not wait for this process, even if it ends and another member fails.
void withdraw(comm::Comm& comm);

/// Creates a communicator of the members of `comm` that have not failed, in the order of their ranks. All agree on who has failed; a later
/// failure is one of the new communicator. Works on a revoked communicator. In an inter-communicator each group keeps its living members;
/// the call fails on all if no member of a group lives. Fails on a living member that the others regard as failed.
Task shrink(comm::Comm& comm, comm::Comm*& result);

/// Sends the decisions that this process keeps to all living members: after MPI_Finalize it does not answer any more, and a member may
/// still wait for a decision that it would have got from a failed one.
void announce_decisions();

/// Notes that a communicator is destroyed. Its decisions are kept, those of at most kClosedKept communicators; the oldest are sent to all
/// living members before they are dropped.
void close_agreements(const comm::Comm& comm);
inline constexpr size_t kClosedKept = 64;

}  // namespace starling::collective
