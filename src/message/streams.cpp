#include "message/streams.h"

#include <algorithm>

#include "base/error.h"
#include "base/immortal.h"
#include "datatype/datatype.h"
#include "link/remote.h"
#include "link/wires.h"
#include "message/receive.h"
#include "message/serials.h"
#include "transport/ip/tcp.h"

namespace starling::message {

namespace {

constinit Immortal<Serials<ReceiveRequest>> streaming_storage;  ///< receives that get their data in pieces
constinit auto& streaming = streaming_storage.value;
constinit uint32_t next_generation = 0;
void (*send_again)(SendRequest& request) = nullptr;

ReceiveRequest* find(const link::Peer& peer, uint32_t serial, uint32_t generation, uint64_t offset, uint64_t bytes) {
    ReceiveRequest* request = streaming.find(serial);
    // A late one may name a serial that is another request's by now.
    if (!request || request->peer != &peer || request->generation != generation) return nullptr;
    return offset <= request->expected && bytes <= request->expected - offset ? request : nullptr;
}

void end(ReceiveRequest& request, int error) {
    streaming.remove(request.serial);
    delete request.coverage;
    request.coverage = nullptr;
    finish_receive(request, error);
}

void arrived(ReceiveRequest& request, uint64_t offset, uint64_t bytes) {
    request.moved += request.coverage ? request.coverage->add({offset, offset + bytes}) : bytes;
    if (request.moved < request.expected) return;
    if (request.coverage) {
        const Fetched fetched{request.send_serial};
        link::send_control(*request.peer, packet::Kind::fetched, &fetched, sizeof fetched);
    }
    end(request, request.outcome.error);
}

std::byte* target(link::Peer& peer, const ip::Piece& piece, uint64_t done, uint64_t) {
    ReceiveRequest* request = find(peer, piece.serial, piece.generation, piece.offset, piece.bytes);
    if (!request || !datatype::is_block(*request->type, request->count)) return nullptr;
    return static_cast<std::byte*>(datatype::block_address(*request->type, request->buffer)) + piece.offset + done;
}

void unpack(link::Peer& peer, const ip::Piece& piece, uint64_t done, const std::byte* data, uint64_t bytes) {
    if (ReceiveRequest* request = find(peer, piece.serial, piece.generation, piece.offset, piece.bytes))
        datatype::unpack(*request->type, request->count, request->buffer, piece.offset + done, data, bytes);
}

void take_piece(link::Peer& peer, const ip::Piece& piece) {
    ReceiveRequest* request = find(peer, piece.serial, piece.generation, piece.offset, piece.bytes);
    if (request) arrived(*request, piece.offset, piece.bytes);
}

SendRequest& owner(const ip::OutStream& stream) { return *static_cast<SendRequest*>(stream.source().user); }

void pack(void* user, uint64_t offset, std::byte* to, uint64_t bytes) {
    const auto& request = *static_cast<const SendRequest*>(user);
    datatype::pack(*request.type, request.count, request.buffer, offset, to, bytes);
}

}  // namespace

void ask_for_pieces(ReceiveRequest& request, const Offer& offer, uint64_t bytes, bool at_once) {
    request.moved = 0;
    request.outcome.bytes = bytes;
    request.expected = bytes;
    request.send_serial = offer.serial;
    if (++next_generation == 0) ++next_generation;
    request.generation = next_generation;
    request.coverage = request.peer->remote ? new ip::Coverage : nullptr;
    request.serial = streaming.add(request);
    // Pieces that were sent ahead may end beyond what was received into.
    const bool all_at_once = at_once && bytes == offer.bytes;
    if (all_at_once && offer.ahead) {
        request.peer->ahead_serial = request.serial;
        request.peer->ahead_generation = request.generation;
    }
    const ClearToStream clear{bytes, offer.serial, request.serial, request.generation, all_at_once};
    link::send_control(*request.peer, packet::Kind::clear_to_stream, &clear, sizeof clear);
}

void on_piece(link::Peer& peer, const link::Packet& packet) {
    const uint64_t offset = packet.header.piece.offset;
    const uint32_t bytes = packet.header.bytes;
    const bool unasked = packet.header.piece.generation == 0;
    if (unasked && peer.ahead_generation == 0) return;
    ReceiveRequest* request = find(peer, unasked ? peer.ahead_serial : packet.header.piece.serial,
                                   unasked ? peer.ahead_generation : packet.header.piece.generation, offset, bytes);
    if (!request) return;
    datatype::unpack(*request->type, request->count, request->buffer, offset, packet.payload, bytes);
    arrived(*request, offset, bytes);
}

void fail_streams(bool (*is_gone)(const link::Peer& peer, const void* argument), const void* argument) {
    streaming.each([&](ReceiveRequest& request) {
        if (!is_gone(*request.peer, argument)) return;
        end(request, fail(MPI_ERR_PROC_ABORTED, "the sender of a message that was being received has ended"));
    });
}

bool begin_stream(SendRequest& request) {
    ip::OutStream::Source source;
    source.serial = request.stream_to;
    source.generation = request.generation;
    source.bytes = request.bytes;
    if (datatype::is_block(*request.type, request.count))
        source.memory = static_cast<const std::byte*>(datatype::block_address(*request.type, request.buffer));
    source.pack = pack;
    source.user = &request;
    request.stream = new ip::OutStream(source);
    return !link::send_by_wire(*request.peer, *request.stream) || !link::is_by_wire(*request.stream);
}

Turn advance_stream(SendRequest& request) {
    ip::OutStream& stream = *request.stream;
    link::Peer& peer = *request.peer;
    for (int i = 0; stream.has_work(); ++i) {
        // A connection that has opened meanwhile takes the rest.
        if (link::is_by_wire(stream) || (!stream.connection && link::send_by_wire(peer, stream) && link::is_by_wire(stream)))
            return Turn::done;
        if (i == kPiecesAtOnce) return Turn::over;
        const auto most = static_cast<uint32_t>(std::min<uint64_t>(stream.waiting_bytes(), link::remote_piece_limit(peer)));
        link::Slot slot;
        if (!link::reserve(peer, most, slot)) return Turn::no_room;
        const ip::StreamRange range = stream.take(ip::kReliablePath, most);
        slot.header->kind = packet::Kind::piece;
        slot.header->piece = {request.generation, request.stream_to, range.begin};
        datatype::pack(*request.type, request.count, request.buffer, range.begin, slot.payload, range.bytes());
        link::commit(peer, slot, static_cast<uint32_t>(range.bytes()));
    }
    return Turn::done;
}

void end_stream(SendRequest& request, bool confirmed) {
    if (!request.stream) return;
    link::end_stream(*request.stream, confirmed);
    delete request.stream;
    request.stream = nullptr;
}

void start_streams(void (*stranded)(SendRequest& request)) {
    send_again = stranded;
    link::upcalls.target = target;
    link::upcalls.unpack = unpack;
    link::upcalls.piece = take_piece;
    link::upcalls.stranded = [](ip::OutStream& stream) { send_again(owner(stream)); };
}

}  // namespace starling::message
