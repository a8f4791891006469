#include "message/protocol/incoming.h"

#include "base/counter_start.h"
#include "base/error.h"
#include "base/no_destroy.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "message/completion.h"
#include "message/protocol/rdma_write.h"
#include "message/protocol/timed_copy.h"
#include "message/request_ids.h"
#include "transport/stream.h"

namespace starling::message::incoming {

namespace {

STARLING_STATE NoDestroy<RequestIds<ReceiveRequest>> receives_storage;
constinit auto& receives = receives_storage.value;
STARLING_STATE uint32_t next_generation = kCounterStart;

void end(ReceiveRequest& request, int error, bool at_once = false) {
    rdma_write::call_off(request, at_once);
    receives.remove(request.serial);
    timed_copy::completed(request);
    delete request.coverage;
    request.coverage = nullptr;
    finish(request, error);
}

}  // namespace

Cts list(const Matched& message) {
    ReceiveRequest& request = message.request;
    link::Peer& peer = *request.peer;
    request.moved = 0;
    request.outcome.bytes = message.bytes;
    request.expected = message.bytes;
    request.send_serial = message.offer.serial;
    if (++next_generation == 0) ++next_generation;
    request.generation = next_generation;
    request.coverage = peer.supports(transport::kStreams) ? new transport::Coverage : nullptr;
    request.serial = receives.add(request);
    // Fragments that were sent before the CTS may reach beyond the end of a shorter receive buffer, so they are accepted only if the whole
    // message fits.
    const bool all_at_once = message.at_once && message.bytes == message.offer.bytes;
    if (all_at_once && message.offer.ahead) {
        peer.ahead_serial = request.serial;
        peer.ahead_generation = request.generation;
    }
    return {message.bytes, message.offer.serial, request.serial, request.generation, all_at_once};
}

void send_cts(const Matched& message) {
    const Cts clear = list(message);
    link::send_control(*message.request.peer, packet::PacketKind::clear_to_stream, &clear, sizeof clear);
}

void repeat_cts(const ReceiveRequest& request) {
    const Cts clear{request.expected, request.send_serial, request.serial, request.generation, 0};
    link::send_control(*request.peer, packet::PacketKind::clear_to_stream, &clear, sizeof clear);
}

ReceiveRequest* find(const link::Peer& peer, uint32_t serial, uint32_t generation, uint64_t offset, uint64_t bytes) {
    ReceiveRequest* request = receives.find(serial);
    // A late fragment may name a request id that another request uses by then.
    if (!request || request->peer != &peer || request->generation != generation) return nullptr;
    return offset <= request->expected && bytes <= request->expected - offset ? request : nullptr;
}

void arrived(ReceiveRequest& request, uint64_t offset, uint64_t bytes) {
    request.moved += request.coverage ? request.coverage->add({offset, offset + bytes}) : bytes;
    if (request.moved < request.expected) return;
    if (request.coverage) {
        const Fin fetched{request.send_serial};
        link::send_control(*request.peer, packet::PacketKind::fetched, &fetched, sizeof fetched);
    }
    end(request, request.outcome.error);
}

void on_fragment(link::Peer& peer, const link::Packet& packet) {
    const uint64_t offset = packet.header.fragment.offset;
    const uint32_t bytes = packet.header.bytes;
    const bool unasked = packet.header.fragment.generation == 0;
    if (unasked && peer.ahead_generation == 0) return;
    ReceiveRequest* request = find(peer, unasked ? peer.ahead_serial : packet.header.fragment.serial,
                                   unasked ? peer.ahead_generation : packet.header.fragment.generation, offset, bytes);
    if (!request) return;
    datatype::unpack(*request->type, request->count, request->buffer, offset, packet.payload, bytes);
    arrived(*request, offset, bytes);
}

void fail(const Gone& gone) {
    receives.each([&gone](ReceiveRequest& request) {
        if (!gone.includes(*request.peer)) return;
        timed_copy::forget(request);
        end(request, starling::fail(MPI_ERR_PROC_ABORTED, "the sender ended while its message was being received"), true);
    });
}

}  // namespace starling::message::incoming
