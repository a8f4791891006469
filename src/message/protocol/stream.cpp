#include "message/protocol/stream.h"

#include <algorithm>

#include "datatype/datatype.h"
#include "message/protocol/incoming.h"
#include "message/protocol/pieces.h"
#include "message/send.h"
#include "transport/stream.h"

namespace starling::message::stream {

namespace {

ReceiveRequest* find(const link::Peer& peer, const transport::StreamFragment& piece) {
    return incoming::find(peer, piece.serial, piece.generation, piece.offset, piece.bytes);
}

std::byte* target(link::Peer& peer, const transport::StreamFragment& piece, uint64_t done, uint64_t) {
    ReceiveRequest* request = find(peer, piece);
    if (!request || !datatype::is_block(*request->type, request->count)) return nullptr;
    return static_cast<std::byte*>(datatype::block_address(*request->type, request->buffer)) + piece.offset + done;
}

void unpack(link::Peer& peer, const transport::StreamFragment& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
    if (ReceiveRequest* request = find(peer, piece))
        datatype::unpack(*request->type, request->count, request->buffer, piece.offset + done, data, bytes);
}

void handle_fragment(link::Peer& peer, const transport::StreamFragment& piece) {
    if (ReceiveRequest* request = find(peer, piece)) incoming::arrived(*request, piece.offset, piece.bytes);
}

void pack(void* user, uint64_t offset, std::byte* to, uint64_t bytes) {
    const auto& request = *static_cast<const SendRequest*>(user);
    datatype::pack(*request.type, request.count, request.buffer, offset, to, bytes);
}

/// Handles a connection that cannot carry the whole stream: the base path sends the rest.
void stranded(transport::OutStream& stream) { enqueue_cleared(*static_cast<SendRequest*>(stream.source().user)); }

}  // namespace

bool is_possible(const Matched& message) { return message.peer().supports(transport::kStreams); }

bool pays(const Matched&) { return true; }

bool start(const Matched& message) {
    incoming::send_cts(message);
    return true;
}

void listen() {
    link::upcalls.target = target;
    link::upcalls.unpack = unpack;
    link::upcalls.fragment = handle_fragment;
}

bool begin(SendRequest& request) {
    transport::OutStream::StreamSource source;
    source.serial = request.stream_to;
    source.generation = request.generation;
    source.bytes = request.bytes;
    if (datatype::is_block(*request.type, request.count))
        source.memory = static_cast<const std::byte*>(datatype::block_address(*request.type, request.buffer));
    source.pack = pack;
    source.stranded = stranded;
    source.user = &request;
    request.stream = new transport::OutStream(source);
    return !request.peer->base->by.streams()->carry(*request.peer->base, *request.stream);
}

StreamProgress advance(SendRequest& request) {
    transport::OutStream& stream = *request.stream;
    link::Peer& peer = *request.peer;
    for (int i = 0; stream.has_work(); ++i) {
        // A connection that has opened meanwhile sends the rest of the stream.
        if (peer.base->by.streams()->carry(*peer.base, stream)) return StreamProgress::done;
        if (i == pieces::kAtOnce) return StreamProgress::over;
        const auto most = static_cast<uint32_t>(std::min<uint64_t>(stream.waiting_bytes(), peer.base->fragment_limit()));
        link::PacketSlot slot;
        if (!link::reserve(peer, most, slot)) return StreamProgress::no_room;
        const transport::StreamRange range = stream.extract(transport::kReliablePath, most);
        slot.header->kind = packet::PacketKind::fragment;
        slot.header->fragment = {request.generation, request.stream_to, range.begin};
        datatype::pack(*request.type, request.count, request.buffer, range.begin, slot.payload, range.bytes());
        link::commit(peer, slot, static_cast<uint32_t>(range.bytes()));
    }
    return StreamProgress::done;
}

void end(SendRequest& request, bool confirmed) {
    if (!request.stream) return;
    request.peer->base->by.streams()->end(*request.stream, confirmed);
    delete request.stream;
    request.stream = nullptr;
}

}  // namespace starling::message::stream
