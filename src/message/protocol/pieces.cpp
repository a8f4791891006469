#include "message/protocol/pieces.h"

#include <algorithm>

#include "base/config.h"
#include "base/live.h"
#include "datatype/datatype.h"
#include "message/protocol/incoming.h"
#include "message/protocol/kernel_copy.h"
#include "progress/blocking_wait.h"

namespace starling::message::pieces {

namespace {

/// Whether the message would come through the ring without delay: its sender waits in the library, has a core, and is not
/// busy fetching from us. Then that is faster than the kernel's copy, whose reading takes what the sender has just written
/// from its cache line by line.
bool come_without_delay(const link::Peer& peer, const Rts& offer, uint64_t bytes) {
    const uint64_t limit = offer.reach == CopyPath::Reach::far ? live(config().stream_limit) / 4 : live(config().stream_limit);
    if (limit == 0 || (bytes > limit && offer.reach != CopyPath::Reach::close)) return false;
    if (progress::core_is_crowded() || peer.open_offers > 1) return false;
    return offer.waits || peer.near.region.presence().waiting.load(std::memory_order_relaxed) != 0;
}

/// While a piece is written the one before is read, and the first and the last have nobody beside them: so pieces grow from
/// small ones and end with small ones. In between a piece's own cost counts.
uint32_t next_bytes(const SendRequest& request) {
    constexpr uint64_t kShort = 4096;
    const uint64_t done = request.moved, rest = request.bytes - done;
    const uint64_t half = (rest / 2 + kShort - 1) / kShort * kShort;
    const uint64_t wanted = std::max(kShort, std::min(done, half));
    return static_cast<uint32_t>(std::min<uint64_t>({wanted, rest, link::payload_limit(*request.peer)}));
}

}  // namespace

bool can(const Matched& message) { return !message.peer().can(transport::kStreams); }

bool pays(const Matched& message) {
    if (!kernel_copy::can(message)) return true;
    // What a process has sent itself would be complete for the sender before it is for the receiver, for two copies.
    return !message.is_own() && come_without_delay(message.peer(), message.offer, message.bytes);
}

bool start(const Matched& message) {
    incoming::ask(message);
    return true;
}

bool put(SendRequest& request, uint32_t serial, uint32_t generation) {
    const uint32_t bytes = next_bytes(request);
    link::Slot slot;
    if (!link::reserve(*request.peer, bytes, slot)) return false;
    slot.header->kind = packet::Kind::piece;
    slot.header->piece = {generation, serial, request.moved};
    datatype::pack(request.peer->copies, *request.type, request.count, request.buffer, request.moved, slot.payload, bytes,
                   slot.rotates ? CopyPath::Into::rotation : CopyPath::Into::streamed);
    link::commit(*request.peer, slot, bytes);
    request.moved += bytes;
    return true;
}

// One piece after the other until the path is full, or others have their turn: a receiver that is faster than its sender
// always makes room. A piece goes out whole or not at all, so a connection may open or close between two of them.
bool advance(SendRequest& request) {
    for (int i = 0; request.moved < request.bytes; ++i)
        if (i == kAtOnce || !put(request, request.stream_to, request.generation)) return false;
    return true;
}

}  // namespace starling::message::pieces
