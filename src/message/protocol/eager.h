// Eager: the whole message is in one packet. Inline, because every message passes through this code.
//
//   when    up to STARLING_EAGER_LIMIT and the current payload limit of the path; the sender alone decides.
//   costs   a copy into shared memory or a session, and one out of it; neither side waits for the other.
//   starts  put(), if the peer's queue is empty and the path has room; otherwise the send waits in the queue.
//   packet  `eager`: take(), once a receive matches; the message is kept in memory until then.
//   fails   with its peer, while it is queued. If the path's payload limit has shrunk by then, the message becomes a rendezvous
//           (rendezvous.h).
#pragma once

#include "base/config.h"
#include "base/copy_in.h"
#include "base/live.h"
#include "datatype/datatype.h"
#include "link/peer.h"
#include "message/completion.h"
#include "message/error_marker.h"
#include "message/protocol/payload.h"
#include "transport/packet.h"

namespace starling::message::eager {

/// Returns whether a message can be sent without waiting for a CTS.
inline bool is_possible(const link::Peer& peer, uint64_t bytes) {
    return bytes <= live(config().eager_limit) && (bytes <= transport::kLeastPayload || bytes <= link::payload_limit(peer));
}

/// Sends the message on any path that has room; returns false if none has.
[[gnu::noinline]] inline bool put_anywhere(link::Peer& peer, const packet::MessageHeader& envelope,
                                           const datatype::Datatype& type, int64_t count, const void* buffer, uint32_t bytes) {
    link::PacketSlot slot;
    if (!link::reserve(peer, bytes, slot)) return false;
    // As in pieces.cpp, the header is stored behind the data: the receiver's core has its line.
    __builtin_prefetch(slot.header, 1);
    const auto into = choose_payload(slot, type, count, buffer, 0, CopyPath::CopyDestination::again);
    datatype::pack_short(peer.copies, type, count, buffer, slot.payload, bytes, into);
    slot.header->kind = packet::PacketKind::eager;
    slot.header->message = envelope;
    link::commit(peer, slot, bytes);
    return true;
}

/// Sends the message, with a short code path for short payloads on a ring; returns false if there is no room. The envelope's words stay in
/// registers until they are stored into the ring. If the envelope lay in memory, one load of 16 bytes would follow the three stores of
/// its words. The processor would wait until these are in the cache (1 ns of a message's 40).
[[gnu::always_inline]] inline bool put(link::Peer& peer, const packet::MessageHeader& envelope, const datatype::Datatype& type,
                                       int64_t count, const void* buffer, uint32_t bytes) {
    std::byte* const payload = peer.shm_path.has_ring() ? peer.shm_path.out.reserve_short(bytes) : nullptr;
    if (!payload) [[unlikely]] {
        const packet::MessageHeader in_memory = envelope;
        return put_anywhere(peer, in_memory, type, count, buffer, bytes);
    }
    packet::Header& header = peer.shm_path.out.header();
    header.kind = packet::PacketKind::eager;
    header.message = envelope;
    datatype::pack_short(peer.copies, type, count, buffer, payload, bytes, CopyPath::CopyDestination::again);
    peer.shm_path.commit_in_ring(bytes);
    return true;
}

[[gnu::noinline, gnu::cold]] inline void receive_truncated(ReceiveRequest& request, const std::byte* payload, uint64_t bytes) {
    datatype::unpack(*request.type, request.count, request.buffer, 0, payload, request.capacity);
    request.outcome.bytes = request.capacity;
    const int marked = may_bring_marks(*request.channel) ? ErrorMarker::read(payload, bytes) : MPI_SUCCESS;
    finish(request, marked ? ErrorMarker::failed_elsewhere(marked) : truncated(request, bytes));
}

/// Completes the receive that the message matches. `from`: the process that has just written the payload; null: this process has copied it.
[[gnu::always_inline]] inline void take(ReceiveRequest& request, int source, int tag, const std::byte* payload, uint64_t bytes,
                                        const link::Peer* from) {
    request.outcome.source = source;
    request.outcome.tag = tag;
    if (bytes > request.capacity) [[unlikely]]
        return receive_truncated(request, payload, bytes);
    const bool fresh = from && bytes >= kCopyInMatters && from->copies.reach() != CopyPath::CacheDistance::far;
    if (fresh && datatype::is_block(*request.type, request.count))
        copy_in(datatype::block_address(*request.type, request.buffer), payload, bytes);
    else
        datatype::unpack_short(*request.type, request.count, request.buffer, payload, bytes);
    request.outcome.bytes = bytes;
    finish(request, MPI_SUCCESS);
}

}  // namespace starling::message::eager
