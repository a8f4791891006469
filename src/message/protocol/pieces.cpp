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

/// Returns whether fragments would arrive through the ring without delay: the sender waits in the library, has a core, and is not busy
/// reading from this process. Fragments are then faster than the kernel's copy, which takes what the sender has just written out of the
/// sender's cache line by line.
bool arrive_without_delay(const link::Peer& peer, const Rts& offer, uint64_t bytes) {
    const uint64_t limit =
        offer.reach == CopyPath::CacheDistance::far ? live(config().stream_limit) / 4 : live(config().stream_limit);
    if (limit == 0 || (bytes > limit && offer.reach != CopyPath::CacheDistance::close)) return false;
    if (progress::core_is_crowded() || peer.open_offers > 1) return false;
    return offer.waits || peer.shm_path.region.presence().waiting.load(std::memory_order_relaxed) != 0;
}

/// The receiver reads one fragment while the sender writes the next, but nothing overlaps with the first write and the last read. So
/// fragments start small, grow, and end small. In between, the fixed cost per fragment matters.
uint32_t next_bytes(const SendRequest& request) {
    constexpr uint64_t kShort = 4096;
    const uint64_t done = request.moved, rest = request.bytes - done;
    const uint64_t half = (rest / 2 + kShort - 1) / kShort * kShort;
    const uint64_t wanted = std::max(kShort, std::min(done, half));
    return static_cast<uint32_t>(std::min<uint64_t>({wanted, rest, link::payload_limit(*request.peer)}));
}

}  // namespace

bool is_possible(const Matched& message) { return !message.peer().supports(transport::kStreams); }

bool pays(const Matched& message) {
    if (!kernel_copy::is_possible(message)) return true;
    // A message to this process itself is not sent as fragments: the send would be complete before the receive, and the data would be
    // copied twice.
    return !message.is_to_self() && arrive_without_delay(message.peer(), message.offer, message.bytes);
}

bool start(const Matched& message) {
    incoming::send_cts(message);
    return true;
}

bool put(SendRequest& request, uint32_t serial, uint32_t generation) {
    const uint32_t bytes = next_bytes(request);
    link::PacketSlot slot;
    if (!link::reserve(*request.peer, bytes, slot)) return false;
    slot.header->kind = packet::PacketKind::fragment;
    slot.header->fragment = {generation, serial, request.moved};
    datatype::pack(request.peer->copies, *request.type, request.count, request.buffer, request.moved, slot.payload, bytes,
                   slot.rotates ? CopyPath::CopyDestination::rotation : CopyPath::CopyDestination::streamed);
    link::commit(*request.peer, slot, bytes);
    request.moved += bytes;
    return true;
}

// Sends fragment after fragment until the path is full, but at most kAtOnce of them, so that other messages are served too. The path may
// never be full if the receiver is faster than the sender. A fragment is sent whole or not at all, so a connection may open or close
// between two of them.
bool advance(SendRequest& request) {
    for (int i = 0; request.moved < request.bytes; ++i)
        if (i == kAtOnce || !put(request, request.stream_to, request.generation)) return false;
    return true;
}

}  // namespace starling::message::pieces
