// Stream: the protocol for long messages to other hosts, over any path. TCP moves the data straight from the sender's memory into the
// receiver's; the session carries the rest.
//
//   when    between hosts, always.
//   costs   a packet each way before the first byte; by TCP only the kernel's copies, by the session two more.
//   starts  with the receiver's CTS, at the sender in begin().
//   packet  `fragment` on the base path, and frames of TCP: incoming.h.
//   fails   with the other process, but not with a path: what a failed path lost is sent again. So the memory is needed until the
//           receiver's FIN.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::stream {

// Functions of the receiver, for the protocol's row in table.h.
bool is_possible(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);
/// Registers the functions that receive the stream data that TCP delivers (link's upcalls).
void listen();

// Functions of the sender.
/// Starts to send the data that a CTS requests. Returns whether some of it must be sent on the base path (advance()).
bool begin(SendRequest& request);
/// Sends fragments on the base path, until there is no room or other messages must be served (`over`). Returns `done` if nothing is left
/// for the base path.
enum class StreamProgress : uint8_t { done, no_room, over };
StreamProgress advance(SendRequest& request);
/// Ends the request's stream, if it has one; the message's memory is no longer read afterwards. `confirmed`: the receiver has everything.
void end(SendRequest& request, bool confirmed);

}  // namespace starling::message::stream
