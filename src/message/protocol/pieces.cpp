#include "message/protocol/pieces.h"

#include <algorithm>

#include "base/config.h"
#include "base/live.h"
#include "datatype/datatype.h"
#include "message/protocol/incoming.h"
#include "message/protocol/kernel_copy.h"
#include "message/protocol/payload.h"
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

/// Lengths of fragments, bytes.
struct FragmentSizes {
    uint32_t most, least;
};

/// The receiver reads one fragment while the sender writes the next. If both are equally fast, a message takes the time of one copy, plus
/// that of its longest fragment, plus a fixed cost per fragment, mostly the transfer of the fragment's header to the receiver's core. With
/// a common cache a header takes as long as some 2 KB of data, so fragments are short. Between cores that are far apart it takes as long as
/// 10 KB, so fragments are long; the sender is the slower of the two there, so the last fragments are short again.
FragmentSizes fragment_sizes(const SendRequest& request) {
    constexpr FragmentSizes kNear{16 * 1024, 16 * 1024}, kNearLong{32 * 1024, 16 * 1024}, kFar{shm::kOutboxPayload, 16 * 1024};
    constexpr uint64_t kLong = 512 * 1024;
    if (request.peer->copies.reach() == CopyPath::CacheDistance::far) return kFar;
    return request.bytes < kLong ? kNear : kNearLong;
}

uint32_t next_bytes(const SendRequest& request) {
    const uint64_t rest = request.bytes - request.moved;
    if (!request.peer->shm_path.has_ring())
        return static_cast<uint32_t>(std::min<uint64_t>(rest, link::payload_limit(*request.peer)));
    const FragmentSizes sizes = fragment_sizes(request);
    const uint64_t half = rest / 2 / sizes.least * sizes.least;
    return static_cast<uint32_t>(std::min<uint64_t>({rest, sizes.most, std::max<uint64_t>(sizes.least, half)}));
}

/// Reserves room for the next fragment, and sets its length. If other receivers hold most of the outbox, a shorter one may have room.
bool reserve(const SendRequest& request, uint32_t& bytes, link::PacketSlot& slot) {
    bytes = next_bytes(request);
    if (link::reserve(*request.peer, bytes, slot)) return true;
    const uint32_t limit = link::payload_limit(*request.peer);
    if (bytes <= limit) return false;
    bytes = limit;
    return link::reserve(*request.peer, bytes, slot);
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
    uint32_t bytes = 0;
    link::PacketSlot slot;
    if (!reserve(request, bytes, slot)) return false;
    // The receiver's core has the header's cache line. If its words were stored now, the data would wait behind them in the store buffer.
    __builtin_prefetch(slot.header, 1);
    const auto into =
        choose_payload(slot, *request.type, request.count, request.buffer, request.moved, CopyPath::CopyDestination::streamed);
    datatype::pack(request.peer->copies, *request.type, request.count, request.buffer, request.moved, slot.payload, bytes,
                   into);
    slot.header->kind = packet::PacketKind::fragment;
    slot.header->fragment = {generation, serial, request.moved};
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
