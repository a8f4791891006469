#include "message/send.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>

#include "base/config.h"
#include "base/counters.h"
#include "base/error.h"
#include "base/immortal.h"
#include "datatype/datatype.h"
#include "link/remote.h"
#include "message/point_to_point.h"
#include "message/protocol.h"
#include "message/serials.h"
#include "message/split.h"
#include "message/streams.h"
#include "transport/packet.h"
#include "transport/shm/region.h"

namespace starling::message {

namespace {

constinit Immortal<Serials<SendRequest>> offered_storage;  ///< rendezvous: envelope sent or about to be, data not yet gone
constinit auto& offered = offered_storage.value;
constinit size_t queued = 0;  ///< eager sends and envelopes in peers' queues, and streams

void finish(SendRequest& request, int error) {
    if (request.retained) datatype::release(*request.type);
    request.retained = false;
    request.outcome.error = error;
    if (error) [[unlikely]]
        keep_failure(request);
    request.complete();
}

void take_from_queue(SendRequest& request) {
    std::erase(request.peer->sends, &request);
    request.queued = false;
    --queued;
}

void list_offer(SendRequest& request) {
    request.serial = offered.add(request);
    ++request.peer->open_offers;
}

void finish_offered(SendRequest& request, int error) {
    if (request.stream) {
        end_stream(request, error == MPI_SUCCESS);
        if (request.queued) take_from_queue(request);
    }
    offered.remove(request.serial);
    --request.peer->open_offers;
    finish(request, error);
}

void keep_type(SendRequest& request) {
    datatype::retain(*request.type);
    request.retained = true;
}

packet::Message envelope_of(const SendRequest& request) {
    return {request.sequence, request.tag, request.context, request.source_rank};
}

[[gnu::always_inline]] inline bool put_eager(link::Peer& peer, const packet::Message& envelope, const datatype::Datatype& type,
                                             int64_t count, const void* buffer, uint32_t bytes) {
    link::Slot slot;
    if (!link::reserve(peer, bytes, slot)) return false;
    slot.header->kind = packet::Kind::eager;
    slot.header->message = envelope;
    datatype::pack_short(peer.copies, type, count, buffer, slot.payload, bytes,
                         slot.in_outbox() ? CopyPath::Into::rotation : CopyPath::Into::again);
    link::commit(peer, slot, bytes);
    return true;
}

[[gnu::noinline]] bool try_eager(SendRequest& request) {
    return put_eager(*request.peer, envelope_of(request), *request.type, request.count, request.buffer,
                     static_cast<uint32_t>(request.bytes));
}

/// The longest message that goes without asking the receiver first.
uint64_t eager_limit(const link::Peer& peer) { return std::min<uint64_t>(link::payload_limit(peer), config().eager_limit); }

/// How many sends this process has let go, as its peers see it.
Count& let_go_count() {
    const link::Process& me = link::self();
    return shm::Region(me.job->segment().region(me.rank)).counters()->let_go;
}

/// Where the receivers are far, long messages are left to the kernel, which doesn't tell when they have come near.
CopyPath::Reach reach_of(link::Peer& peer) {
    constexpr uint32_t kSeldom = 32;
    if (peer.copies.reach() != CopyPath::Reach::far || ++peer.offers_from_far % kSeldom != 0) return peer.copies.reach();
    peer.copies.ask_again();
    return CopyPath::Reach::near;
}

/// While a piece is written the one before is read, and the first and the last have nobody beside them: so pieces grow from
/// small ones and end with small ones. In between a piece's own cost counts.
uint32_t next_piece(const SendRequest& request) {
    constexpr uint64_t kShort = 4096;
    const uint64_t done = request.moved, rest = request.bytes - done;
    const uint64_t half = (rest / 2 + kShort - 1) / kShort * kShort;
    const uint64_t wanted = std::max(kShort, std::min(done, half));
    return static_cast<uint32_t>(std::min<uint64_t>({wanted, rest, link::payload_limit(*request.peer)}));
}

/// Sends the next piece, for the receiver's request of that name (0, 0: unasked); false if there is no room.
bool put_piece(SendRequest& request, uint32_t receive_serial, uint32_t generation) {
    const uint32_t bytes = next_piece(request);
    link::Slot slot;
    if (!link::reserve(*request.peer, bytes, slot)) return false;
    slot.header->kind = packet::Kind::piece;
    slot.header->piece = {generation, receive_serial, request.moved};
    datatype::pack(request.peer->copies, *request.type, request.count, request.buffer, request.moved, slot.payload, bytes,
                   slot.in_outbox() ? CopyPath::Into::rotation : CopyPath::Into::streamed);
    link::commit(*request.peer, slot, bytes);
    request.moved += bytes;
    return true;
}

/// Whether to begin before the receiver has answered: only where the answer can be foreseen, as what it does not take is
/// copied for nothing. On a ring, where the pieces can't overtake their offer.
bool goes_ahead(const SendRequest& request) {
    const link::Peer& peer = *request.peer;
    return request.waits && peer.expects && peer.out && !peer.close_pending;
}

bool try_envelope(SendRequest& request) {
    link::Slot slot;
    if (!link::reserve(*request.peer, sizeof(Offer), slot)) return false;
    slot.header->kind = packet::Kind::rendezvous;
    slot.header->message = envelope_of(request);
    Offer offer{request.bytes,           0,
                request.serial,          static_cast<int32_t>(getpid()),
                reach_of(*request.peer), request.waits,
                goes_ahead(request),     static_cast<uint32_t>(let_go_count())};
    if (datatype::is_block(*request.type, request.count))
        offer.address = reinterpret_cast<uint64_t>(datatype::block_address(*request.type, request.buffer));
    std::memcpy(slot.payload, &offer, sizeof offer);
    link::commit(*request.peer, slot, sizeof offer);
    constexpr uint64_t kAhead = 32 * 1024;  // it takes longer to write than an answer on its way
    while (offer.ahead && request.moved < std::min(request.bytes, kAhead) && put_piece(request, 0, 0)) {}
    return true;
}

// One piece after the other until the path is full, or others have their turn: a receiver that is faster than its sender
// always makes room. A piece goes out whole or not at all, so a connection may
// open or close between two of them.
bool try_stream(SendRequest& request) {
    for (int i = 0; request.moved < request.bytes; ++i) {
        if (i == kPiecesAtOnce) return false;
        if (!put_piece(request, request.stream_to, request.generation)) return false;
    }
    return true;
}

/// A stream to another host, for as far as it goes by the base path. It ends with the receiver's answer. If others
/// wait, it goes behind them from time to time.
bool advance_remote(SendRequest& request) {
    switch (advance_stream(request)) {
        case Turn::no_room:
            return false;
        case Turn::done:
            request.queued = false;
            return true;
        case Turn::over:
            break;
    }
    request.peer->sends.push_back(&request);
    ++queued;
    return true;
}

/// Tries the next step of a queued send; true when it needs the queue no more.
bool advance(SendRequest& request) {
    switch (request.stage) {
        case SendRequest::Stage::eager:
            // The ring may have been closed since this was queued: what the base path can't take is offered.
            if (request.bytes > link::payload_limit(*request.peer)) {
                request.stage = SendRequest::Stage::envelope;
                request.stream = nullptr;
                list_offer(request);
                return advance(request);
            }
            if (!try_eager(request)) return false;
            finish(request, MPI_SUCCESS);
            return true;
        case SendRequest::Stage::envelope:
            if (!try_envelope(request)) return false;
            request.stage = SendRequest::Stage::offered;
            return true;
        case SendRequest::Stage::stream:
            if (request.stream) return advance_remote(request);
            if (!try_stream(request)) return false;
            finish_offered(request, MPI_SUCCESS);
            return true;
        case SendRequest::Stage::offered:
            break;
    }
    return true;
}

void enqueue(SendRequest& request) {
    request.peer->sends.push_back(&request);
    ++queued;
    link::mark_pending(*request.peer);
}

[[gnu::noinline]] void start_queued(SendRequest& request) {
    keep_type(request);
    if (request.stage == SendRequest::Stage::envelope) {
        request.stream = nullptr;
        list_offer(request);
        link::count_bytes(*request.peer, request.bytes);
        if (request.peer->sends.empty() && request.peer->controls.empty() && advance(request)) return;
    }
    enqueue(request);
}

}  // namespace

bool send_at_once(Channel& channel, const void* buffer, int64_t count, const datatype::Datatype& type, int destination, int tag,
                  Mode mode) {
    link::Peer* peer = channel.peer(destination);
    if (!peer || peer->dead) [[unlikely]]
        return false;
    const uint64_t bytes = datatype::packed_size(type, count);
    if (mode != Mode::standard || bytes > eager_limit(*peer)) return false;
    if (!peer->sends.empty() || !peer->controls.empty()) return false;
    const packet::Message envelope{peer->next_send, tag, channel.context(), channel.my_rank()};
    if (!put_eager(*peer, envelope, type, count, buffer, static_cast<uint32_t>(bytes))) return false;
    ++peer->next_send;
    link::count_message(*peer);
    return true;
}

void start_send(SendRequest& request, Channel& channel, const void* buffer, int64_t count, const datatype::Datatype& type,
                int destination, int tag, Mode mode) {
    request.done = false;
    request.outcome = Outcome{};
    if (send_at_once(channel, buffer, count, type, destination, tag, mode)) [[likely]]
        return request.complete();
    link::Peer* peer = channel.peer(destination);
    if (!peer || peer->dead) [[unlikely]] {
        const bool gone = peer || channel.roster().at(destination).job->dead();  // else it can't be mapped just now
        return finish(request, peer ? link::why_dead(*peer, destination) : gone ? MPI_ERR_PROC_ABORTED : MPI_ERR_OTHER);
    }
    request.buffer = buffer;
    request.count = count;
    request.type = &type;
    request.peer = peer;
    request.bytes = datatype::packed_size(type, count);
    request.context = channel.context();
    request.source_rank = channel.my_rank();
    request.destination = destination;
    request.tag = tag;
    request.sequence = peer->next_send++;
    request.moved = 0;
    request.retained = false;
    link::count_message(*peer);
    const bool eager = mode == Mode::standard && request.bytes <= eager_limit(*peer);
    request.stage = eager ? SendRequest::Stage::eager : SendRequest::Stage::envelope;
    start_queued(request);
}

bool flush(link::Peer& peer) {
    while (!peer.sends.empty()) {
        if (!advance(*peer.sends.front())) return false;
        peer.sends.pop_front();
        --queued;
    }
    return true;
}

namespace {

/// A send that nobody waits for, with a copy of its data.
struct LetGo : SendRequest {
    std::unique_ptr<std::byte[]> data;
};
constexpr RequestClass kLetGo{.dispose = [](Request& request) { delete static_cast<LetGo*>(&request); }};

LetGo* copy_of(const SendRequest& request) {
    auto copy = std::make_unique<LetGo>();
    static_cast<SendRequest&>(*copy) = request;
    copy->data = std::make_unique_for_overwrite<std::byte[]>(request.bytes + 1);
    datatype::pack(*request.type, request.count, request.buffer, 0, copy->data.get(), request.bytes);
    copy->buffer = copy->data.get();
    copy->count = static_cast<int64_t>(request.bytes);
    copy->type = &datatype::predefined(MPI_BYTE);
    copy->retained = false;
    copy->magic = 0;
    copy->waiter = {};
    copy->open_in_group = nullptr;
    copy->operations = &kLetGo;
    copy->communicator = nullptr;
    copy->persistent = false;
    copy->orphaned = true;
    return copy.release();
}

}  // namespace

bool let_go(SendRequest& request) {
    if (request.done || request.stage == SendRequest::Stage::stream) return false;
    LetGo* copy = copy_of(request);
    std::replace(request.peer->sends.begin(), request.peer->sends.end(), &request, static_cast<SendRequest*>(copy));
    if (request.stage != SendRequest::Stage::eager) offered.replace(request.serial, *copy);
    // Before the program may write to the buffer, and seen by who reads it after that.
    ++let_go_count();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    finish(request, MPI_SUCCESS);
    return true;
}

void on_fetched(link::Peer& peer, uint32_t serial) {
    SendRequest* request = offered.find(serial);
    if (!request || request->peer != &peer) return;
    if (request->stage != SendRequest::Stage::offered && !request->stream) return;
    peer.expects = false;
    finish_offered(*request, MPI_SUCCESS);
}

void on_share_copy(link::Peer& peer, const Share& share) {
    SendRequest* request = offered.find(share.send_serial);
    if (!request || request->peer != &peer || request->stage != SendRequest::Stage::offered) return;
    if (share.bytes > request->bytes || !datatype::is_block(*request->type, request->count)) return;
    help_copy(peer, share, datatype::block_address(*request->type, request->buffer));
}

void on_clear_to_stream(link::Peer& peer, const ClearToStream& clear) {
    SendRequest* request = offered.find(clear.send_serial);
    if (!request || request->peer != &peer || request->stage != SendRequest::Stage::offered) return;
    request->stage = SendRequest::Stage::stream;
    request->stream_to = clear.receive_serial;
    request->generation = clear.generation;
    request->bytes = std::min(request->bytes, clear.bytes);
    peer.expects = clear.at_once != 0;
    if (!peer.expects) request->moved = 0;
    if (!peer.remote) return enqueue(*request);
    request->queued = false;
    if (begin_stream(*request)) enqueue_stream(*request);
}

void enqueue_stream(SendRequest& request) {
    if (request.queued) return;
    request.queued = true;
    enqueue(request);
}

namespace {

/// Empties a peer's queue. Only eager sends end with that, the others are still among those offered.
void empty_queue(link::Peer& peer, int error) {
    while (!peer.sends.empty()) {
        SendRequest* request = peer.sends.front();
        peer.sends.pop_front();
        --queued;
        request->queued = false;
        if (request->stage == SendRequest::Stage::eager) finish(*request, error);
    }
}

}  // namespace

void fail_sends(link::Job& job) {
    job.each_peer([](link::Peer& peer) { empty_queue(peer, MPI_ERR_PROC_ABORTED); });
    offered.each([&job](SendRequest& request) {
        if (&request.peer->job == &job) finish_offered(request, MPI_ERR_PROC_ABORTED);
    });
}

void fail_sends(link::Peer& peer) {
    empty_queue(peer, MPI_ERR_PROC_ABORTED);
    offered.each([&peer](SendRequest& request) {
        if (request.peer == &peer) finish_offered(request, MPI_ERR_PROC_ABORTED);
    });
}

void drop_sends_to_finalized() {
    link::each_pending([](link::Peer& peer) {
        if (!link::has_finalized(peer)) return;
        peer.controls.clear();
        peer.close_pending = false;
        empty_queue(peer, MPI_SUCCESS);
    });
    // A stream is queued but while it waits for room, and then it was dropped from the queue just now.
    offered.each([](SendRequest& request) {
        if (link::has_finalized(*request.peer)) finish_offered(request, MPI_SUCCESS);
    });
}

void each_open_send(void (*visit)(const SendRequest& request, void* argument), void* argument) {
    // Those offered may be in a queue as well.
    static void (*visitor)(const SendRequest& request, void* argument);
    static void* visitors_argument;
    visitor = visit;
    visitors_argument = argument;
    link::each_pending([](link::Peer& peer) {
        for (const SendRequest* request : peer.sends)
            if (request->stage == SendRequest::Stage::eager) visitor(*request, visitors_argument);
    });
    offered.each([&](SendRequest& request) { visit(request, argument); });
}

size_t open_sends() {
    size_t count = queued;
    offered.each([&count](SendRequest&) { ++count; });
    return count;
}

}  // namespace starling::message
