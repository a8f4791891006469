// MPI_Cancel of a synchronous send where no match-or-cancel word says whether it was matched (match_or_cancel.h). Only the receiver knows,
// so the sender asks for its envelope back. The send stays open until the receiver has answered or has received the message.
#pragma once

#include "message/request.h"

namespace starling::message {

/// Requests cancellation from the receiver, at once or when the envelope has been sent. The answer completes the request as cancelled, or
/// leaves it as it was.
void request_cancel(SendRequest& request);
/// Asks the receiver whether the message was matched. Called once its envelope has been sent.
void query_receiver(const SendRequest& request);
/// Notifies the receiver that the request was cancelled, so that it can drop the envelope. No answer follows.
void notify_receiver(const SendRequest& request);
/// Registers the handler that answers the cancel packets of other processes.
void listen_for_cancels();

}  // namespace starling::message
