// What requests and message queues tell those who ask what a process waits for (progress/wait_report.h).
#pragma once

#include "message/channel.h"
#include "message/request.h"
#include "progress/wait_report.h"

namespace starling::message {

// For WaitSite::tell of a wait for one request, and for RequestClass::tell.
void tell_receive(const ReceiveRequest& request, progress::WaitReporter& teller);
void tell_send(const SendRequest& request, progress::WaitReporter& teller);
inline void tell_receive(const void* request, progress::WaitReporter& teller) {
    tell_receive(*static_cast<const ReceiveRequest*>(static_cast<const Request*>(request)), teller);
}
inline void tell_send(const void* request, progress::WaitReporter& teller) {
    tell_send(*static_cast<const SendRequest*>(static_cast<const Request*>(request)), teller);
}
/// A request that is a handle, by its class.
void tell_request(const void* request, progress::WaitReporter& teller);

/// A wait for a message that is to stay in its queue.
void tell_probe(MatchContext& channel, int source, int tag, progress::WaitReporter& teller);

/// Which messages a collective operation waits for: those of its channel with its tag.
void tell_collective(MatchContext& channel, int tag, progress::WaitReporter& teller);

/// Posted receives, open sends and messages that have come, of all channels. TellerUpcalls::messages.
void tell_messages(progress::WaitReporter& teller);

}  // namespace starling::message
