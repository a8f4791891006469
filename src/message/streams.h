// Messages that travel in pieces: what the receiver could not copy itself, and everything long between hosts. On one
// host they go through rings and inboxes, once and in order. To another host they go over whatever paths there are,
// TCP straight from memory to memory, and a piece may come twice; so the receiver counts bytes, and says when it has them
// all (`fetched`).
#pragma once

#include "link/peer.h"
#include "message/protocol.h"
#include "message/request.h"

namespace starling::message {

/// Pieces of one message that go out before others have their turn.
inline constexpr int kPiecesAtOnce = 32;

// Receiving.

/// Asks the sender for the first `bytes` of the message. `at_once`: its offer has just come, so pieces that were sent ahead
/// have not.
void ask_for_pieces(ReceiveRequest& request, const Offer& offer, uint64_t bytes, bool at_once = false);
void on_piece(link::Peer& peer, const link::Packet& packet);
/// Fails the receives whose sender `is_gone` says is.
void fail_streams(bool (*is_gone)(const link::Peer& peer, const void* argument), const void* argument);

// Sending to other hosts.

/// Begins to send what the receiver has asked for. Whether something is left for the base path.
bool begin_stream(SendRequest& request);
/// Sends pieces on the base path, as far as there is room and others have their turn. True if nothing is left for it.
enum class Turn : uint8_t { done, no_room, over };
Turn advance_stream(SendRequest& request);
/// Its memory is not needed any more. `confirmed`: the receiver has said that it has everything.
void end_stream(SendRequest& request, bool confirmed);

/// Sets link's upcalls for streams; `stranded` is called with a send that has something for the base path again.
void start_streams(void (*stranded)(SendRequest& request));

}  // namespace starling::message
