#include "message/protocol/rendezvous.h"

#include <algorithm>
#include <cstring>

#include "base/no_destroy.h"
#include "base/process.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "link/host_memory.h"
#include "message/completion.h"
#include "message/match_or_cancel.h"
#include "message/protocol/copy_choice.h"
#include "message/protocol/pieces.h"
#include "message/protocol/rdma_read.h"
#include "message/protocol/rdma_write.h"
#include "message/protocol/stream.h"
#include "message/request_ids.h"
#include "message/send.h"

namespace starling::message::rendezvous {

namespace {

/// The registered sends: each from before its RTS is sent until all of its data has been sent.
STARLING_STATE NoDestroy<RequestIds<SendRequest>> listed_storage;
constinit auto& listed = listed_storage.value;

/// Returns whether the message lies in memory that the receiver can map (MPI_Alloc_mem), and then copies itself.
bool is_reachable(const SendRequest& request) {
    const link::Process& me = link::self();
    if (!me.job || !datatype::is_block(*request.type, request.count)) return false;
    const auto& shown = link::SegmentRegion(me.job->segment().region(me.rank)).exchanged();
    if (shown.ready.load(std::memory_order_relaxed) == 0) [[likely]]
        return false;
    const auto address = reinterpret_cast<uint64_t>(datatype::block_address(*request.type, request.buffer));
    return address - shown.base < shown.bytes;
}

/// Returns whether to send fragments before the CTS. Fragments that the receiver does not accept are copied in vain, so this is done only
/// if the CTS is predictable. It needs a ring, on which fragments cannot overtake their RTS.
bool sends_ahead(const SendRequest& request) {
    const link::Peer& peer = *request.peer;
    return request.waits && peer.expects && peer.shm_path.has_ring() && !is_reachable(request);
}

}  // namespace

void list(SendRequest& request) {
    request.serial = listed.add(request);
    ++request.peer->open_offers;
    request.stream = nullptr;
    request.loan = nullptr;
    request.writing = nullptr;
    request.has_verdict = false;
}

bool put(SendRequest& request) {
    link::PacketSlot slot;
    if (!link::reserve(*request.peer, sizeof(Rts), slot)) return false;
    slot.header->kind = packet::PacketKind::rendezvous;
    slot.header->message = request.envelope();
    Rts offer;
    offer.bytes = request.bytes;
    offer.pid = own_pid();
    offer.abandoned_sends = abandoned_sends();
    offer.serial = request.serial;
    offer.reach = request.peer->copies.reach();
    offer.waits = request.waits;
    offer.ahead = sends_ahead(request);
    if (request.synchronous && !request.withdrawn) open_verdict(request);
    offer.has_verdict = request.has_verdict || request.withdrawn;
    if (request.peer->supports(transport::kStreams))
        rdma_read::register_for_read(request, offer);
    else if (datatype::is_block(*request.type, request.count))
        offer.address = reinterpret_cast<uint64_t>(datatype::block_address(*request.type, request.buffer));
    std::memcpy(slot.payload, &offer, sizeof offer);
    slot.quiet = offer.ahead;  // pieces::put() wakes the receiver
    link::commit(*request.peer, slot, sizeof offer);
    if (offer.ahead) pieces::put(request, std::min(request.bytes, kAheadBytes), 0, 0);
    return true;
}

SendRequest* find_any(const link::Peer& peer, uint32_t serial) {
    SendRequest* request = listed.find(serial);
    return request && request->peer == &peer ? request : nullptr;
}

SendRequest* find(const link::Peer& peer, uint32_t serial) {
    SendRequest* request = find_any(peer, serial);
    return request && request->stage == SendRequest::Stage::offered ? request : nullptr;
}

void finish(SendRequest& request, int error) {
    stream::end(request, error == MPI_SUCCESS);
    rdma_write::detach(request);
    rdma_read::deregister(request, error != MPI_SUCCESS);
    if (request.has_verdict) close_verdict(request);
    listed.remove(request.serial);
    --request.peer->open_offers;
    message::finish(request, error);
}

void replace(uint32_t serial, SendRequest& by) { listed.replace(serial, by); }

void each(void (*visit)(SendRequest& request, void* argument), void* argument) {
    listed.each([&](SendRequest& request) { visit(request, argument); });
}

}  // namespace starling::message::rendezvous
