// Suspended receives: non-blocking receives from MPI_ANY_SOURCE in a communicator with a failure that the program has not acknowledged
// (MPIX_Comm_ack_failed). Such a receive stays posted and may still get a message. Until then it counts as done, so that MPI_Wait returns
// MPIX_ERR_PROC_FAILED_PENDING, but its handle stays valid.
#pragma once

#include "message/channel.h"
#include "message/request.h"

namespace starling::message {

/// Returns whether a receive in vain may be suspended: a request with a handle from MPI_ANY_SOURCE to which a living process may still send.
/// If only this process lives, it may still send to itself; this counts until the program has acknowledged the ends of all others. A program
/// that acknowledges and waits again therefore gets an error at last.
bool can_suspend(const ReceiveRequest& request);
/// Marks a posted receive done, with MPIX_ERR_PROC_FAILED_PENDING; it stays posted. No effect if it is suspended already.
void suspend(ReceiveRequest& request);
/// Returns whether the request is a suspended receive.
bool is_suspended(const Request& request);
/// Makes a suspended receive wait again.
void resume(ReceiveRequest& request);
/// Makes the suspended receives of a match context wait again, unless a failure of one of its ranks is not acknowledged. Ends them if no rank
/// can send any more.
void resume_acknowledged(MatchContext& channel);

}  // namespace starling::message
