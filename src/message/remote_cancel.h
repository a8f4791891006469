// MPI_Cancel of a synchronous send to another process, where no word says whether it was matched (match_or_cancel.h): only its receiver
// knows. So that is asked for the envelope; until it has answered, or has the message, the send is not complete.
#pragma once

#include "message/request.h"

namespace starling::message {

/// Asks, at once or when the envelope has gone. The request completes by the answer, cancelled, or as if it had not been asked.
void ask_back(SendRequest& request);
/// The envelope of a request has gone that was cancelled before.
void ask_receiver(const SendRequest& request);
/// The request has been cancelled: who has its envelope need not keep it. Nothing waits for that.
void tell_receiver(const SendRequest& request);
/// From now on those who ask are answered.
void listen_for_cancels();

}  // namespace starling::message
