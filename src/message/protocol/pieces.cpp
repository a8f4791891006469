#include "message/protocol/pieces.h"

#include <algorithm>

#include "base/config.h"
#include "base/live.h"
#include "datatype/datatype.h"
#include "message/protocol/copy_choice.h"
#include "message/protocol/incoming.h"
#include "message/protocol/kernel_copy.h"
#include "message/protocol/payload.h"
#include "progress/blocking_wait.h"

namespace starling::message::pieces {

bool arrive_without_delay(const link::Peer& peer, const Rts& offer) {
    if (progress::core_is_crowded() || peer.open_offers > 1) return false;
    return offer.waits || peer.shm_path.region.presence().waiting.load(std::memory_order_relaxed) != 0;
}

namespace {

uint32_t next_bytes(const SendRequest& request) {
    const uint64_t rest = request.bytes - request.moved;
    if (!request.peer->shm_path.has_ring())
        return static_cast<uint32_t>(std::min<uint64_t>(rest, link::payload_limit(*request.peer)));
    return fragment_bytes(copy_choice(request.peer->copies.reach()), request.bytes, rest);
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

/// Sends the next fragment, without waking the receiver. Returns false if there is no room.
bool put_one(SendRequest& request, uint32_t serial, uint32_t generation) {
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
    slot.quiet = true;
    link::commit(*request.peer, slot, bytes);
    request.moved += bytes;
    return true;
}

}  // namespace

bool is_possible(const Matched& message) { return !message.peer().supports(transport::kStreams); }

bool pays(const Matched& message) {
    if (!kernel_copy::is_possible(message)) return true;
    // This includes messages to this process itself: as fragments the send would be complete before the receive.
    if (kernel_copy::is_mapped(message)) return false;
    if (message.bytes > fragments_up_to(copy_choice(message.offer.reach), live(config().stream_limit))) return false;
    return arrive_without_delay(message.peer(), message.offer);
}

bool start(const Matched& message) {
    incoming::send_cts(message);
    return true;
}

// A message for other receivers of this process waits for at most kAtOnce fragments. The path may never be full if the receiver is faster
// than the sender. A fragment is sent whole or not at all, so a connection may open or close between two of them.
//
// Whether the receiver sleeps is certain only after a fence, which waits until all stores have reached the receiver's core. So there is one
// fence behind the last fragment. A receiver that is seen asleep before is woken at once.
bool put(SendRequest& request, uint64_t until, uint32_t serial, uint32_t generation) {
    job::Doorbell& doorbell = request.peer->shm_path.region.doorbell();
    for (int i = 0; request.moved < until && i < kAtOnce && put_one(request, serial, generation); ++i)
        if (const uint32_t how = doorbell.sleeping.load(std::memory_order_relaxed)) [[unlikely]]
            job::wake(doorbell, how);
    job::ring(doorbell);
    return request.moved >= until;
}

bool advance(SendRequest& request) { return put(request, request.bytes, request.stream_to, request.generation); }

}  // namespace starling::message::pieces
