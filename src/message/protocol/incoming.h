// Messages on their way to us in pieces, whoever brings those: which receive a piece belongs to, and what is still missing. Within
// a host pieces come once and in order of their path; from another host they may come twice, so bytes are counted
// there, and the sender hears when they have all come.
#pragma once

#include "message/protocol/protocol.h"

namespace starling::message::incoming {

/// Awaits the wanted bytes; gives what the sender is to be told.
Cts list(const Matched& message);
/// Does so, and asks the sender for them.
void ask(const Matched& message);
/// Of a receive that is listed, and of which nothing has come: asks for them once more, or for the first time, in pieces.
void ask_again(const ReceiveRequest& request);
/// The receive that waits for these bytes, nullptr if none does (any more).
ReceiveRequest* find(const link::Peer& peer, uint32_t serial, uint32_t generation, uint64_t offset, uint64_t bytes);
/// They have been written to its buffer.
void arrived(ReceiveRequest& request, uint64_t offset, uint64_t bytes);
/// A packet of kind `piece`.
void on_piece(link::Peer& peer, const link::Packet& packet);
/// Fails the receives whose senders are gone.
void fail(const Gone& gone);

}  // namespace starling::message::incoming
