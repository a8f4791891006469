// MPI_Cancel of a synchronous send without a match-or-cancel word (match_or_cancel.h), for example to another host. Only the receiver knows
// whether the message was matched, so the sender asks it to drop the envelope. The send stays open until the receiver has replied or has
// received the message.
#pragma once

#include "message/request.h"

namespace starling::message {

/// Asks the receiver to cancel the message, at once or when the envelope has been sent. The receiver's reply completes the request as
/// cancelled, or leaves it unchanged.
void request_cancel(SendRequest& request);
/// Asks the receiver whether the message was matched. Called once its envelope has been sent.
void query_receiver(const SendRequest& request);
/// Notifies the receiver that the request was cancelled, so that it can drop the envelope. No answer follows.
void notify_receiver(const SendRequest& request);
/// Registers the handler that answers the cancel packets of other processes.
void listen_for_cancels();

}  // namespace starling::message
