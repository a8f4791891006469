// Stream: what is long and goes to another host. It goes over whatever paths there are, TCP straight from the sender's memory into the
// receiver's, the session for what TCP does not take.
//
//   when    between hosts, always
//   costs   a packet each way before the first byte; by TCP the kernel's copies alone, by the session two more
//   starts  the receiver asks (`clear_to_stream`), begin() at the sender
//   packet  `piece` on the base path, and frames of TCP: incoming.h
//   fails   with the other process; not with a path: what a dead one swallowed goes out again, so the memory is needed until the
//           receiver has it all (`fetched`)
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::stream {

// The receiver's side (table.h).
bool can(const Matched& message);
bool pays(const Matched& message);
bool start(const Matched& message);
/// Takes what TCP brings: sets link's upcalls.
void listen();

// The sender's side.
/// Begins to send what the receiver has asked for. Whether something is left for the base path.
bool begin(SendRequest& request);
/// Sends pieces on the base path, as far as there is room and others have their turn. Done if nothing is left for it.
enum class Turn : uint8_t { done, no_room, over };
Turn advance(SendRequest& request);
/// Its memory is not needed any more; of a send that has no stream, nothing. `confirmed`: the receiver has everything.
void end(SendRequest& request, bool confirmed);

}  // namespace starling::message::stream
