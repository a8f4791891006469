#include "message/send.h"

#include <algorithm>

#include <new>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "link/remote_peer.h"
#include "message/completion.h"
#include "message/context_table.h"
#include "message/point_to_point.h"
#include "message/protocol/eager.h"
#include "message/protocol/pieces.h"
#include "message/protocol/rdma_write.h"
#include "message/protocol/rendezvous.h"
#include "message/protocol/stream.h"
#include "message/receive.h"
#include "message/remote_cancel.h"
#include "message/revocation.h"
#include "profile/traffic.h"
#include "progress/engine.h"

namespace starling::message {

namespace {

using Stage = SendRequest::Stage;

/// Number of eager sends and envelopes in peers' queues, and of sends in progress as fragments.
STARLING_STATE size_t queued = 0;

void enqueue(SendRequest& request) {
    request.peer->sends.push_back(&request);
    request.queued = true;
    ++queued;
}

/// Completes a send whose RTS was queued or sent, and removes it from its queue.
void finish_offered(SendRequest& request, int error) {
    if (request.stream && request.queued) {
        std::erase(request.peer->sends, &request);
        --queued;
    }
    rendezvous::finish(request, error);
}

profile::Size size_of_eager(uint64_t bytes) {
    return bytes <= profile::kSmallMost ? profile::Size::small : profile::Size::pool;
}

void hold_type(SendRequest& request) {
    datatype::retain(*request.type);
    request.retained = true;
}

[[gnu::noinline]] bool put_eager(SendRequest& request) {
    return eager::put(*request.peer, request.envelope(), *request.type, request.count, request.buffer,
                      static_cast<uint32_t>(request.bytes));
}

/// Advances the part of a stream that uses the base path. The stream ends with the receiver's FIN. If other messages wait, the stream moves
/// behind them from time to time.
bool advance_stream(SendRequest& request) {
    const stream::StreamProgress turn = stream::advance(request);
    if (turn == stream::StreamProgress::no_room) return false;
    request.queued = false;
    if (turn == stream::StreamProgress::over) enqueue(request);
    return true;
}

/// Tries the next step of a queued send. Returns true if it can leave the queue.
bool advance(SendRequest& request) {
    switch (request.stage) {
        case Stage::eager:
            // The ring may have been closed since the send was queued. A message too long for the base path becomes a rendezvous.
            if (request.bytes > link::payload_limit(*request.peer)) {
                request.stage = Stage::envelope;
                rendezvous::list(request);
                return advance(request);
            }
            if (!put_eager(request)) return false;
            finish(request, MPI_SUCCESS);
            return true;
        case Stage::envelope:
            if (!rendezvous::put(request)) return false;
            request.stage = Stage::offered;
            if (request.withdrawn) [[unlikely]]
                rendezvous::finish(request, MPI_SUCCESS);
            else if (request.cancelling) [[unlikely]]
                query_receiver(request);
            return true;
        case Stage::pieces:
            if (!pieces::advance(request)) return false;
            rendezvous::finish(request, MPI_SUCCESS);
            return true;
        case Stage::stream:
            return advance_stream(request);
        case Stage::offered:
        case Stage::written:
            break;
    }
    return true;
}

[[gnu::noinline]] void start_queued(SendRequest& request) {
    hold_type(request);
    if (request.stage == Stage::envelope) {
        rendezvous::list(request);
        link::count_bytes(*request.peer, request.bytes);
        if (request.peer->sends.empty() && request.peer->controls.empty() && advance(request)) return;
    }
    enqueue(request);
    link::mark_pending(*request.peer);
}

}  // namespace

namespace {

bool abandon_sends_again();

/// Whether a send could not be abandoned for lack of memory.
STARLING_STATE bool lacked_memory = false;

/// Abandons a send of a collective operation with a failed member, whose receiver may never send its CTS. A send whose CTS has arrived
/// continues.
[[gnu::cold]] void abandon_send(SendRequest& request, int error = MPI_SUCCESS) {
    if (request.done || request.stage == Stage::eager || request.has_cts()) return;
    try {
        complete_with_copy(request, error);
    } catch (const std::bad_alloc&) {
        lacked_memory = true;
        progress::add_poller(abandon_sends_again);
    }
}

}  // namespace

bool send_short(MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type, int destination,
                int tag, Unsent& unsent) {
    link::Peer* const peer = channel.peer(destination);
    if (!peer || peer->dead) [[unlikely]] {
        unsent = {peer, 0, false};
        return false;
    }
    const uint64_t bytes = datatype::packed_size(type, count);
    const bool eager = eager::is_possible(*peer, bytes);
    const packet::MessageHeader envelope{peer->next_send, tag, channel.context(), channel.my_rank()};
    if (!eager || !peer->sends.empty() || !peer->controls.empty() ||
        !eager::put(*peer, envelope, type, count, buffer, static_cast<uint32_t>(bytes))) {
        unsent = {peer, bytes, eager};
        return false;
    }
    ++peer->next_send;
    link::count_message(*peer, size_of_eager(bytes), bytes);
    return true;
}

Unsent must_send_rts(MatchContext& channel, int64_t count, const datatype::Datatype& type, int destination) {
    return {channel.peer(destination), datatype::packed_size(type, count), false};
}

void start_unsent(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count,
                  const datatype::Datatype& type, int destination, int tag, const Unsent& unsent) {
    link::Peer* const peer = unsent.peer;
    if (!peer || peer->dead) [[unlikely]] {
        if (channel.revoked()) return finish(request, why_revoked());
        const bool gone = peer || channel.roster().at(destination).job->dead();  // false: the job cannot be mapped now
        return finish(request, peer ? link::why_dead(*peer, destination) : gone ? MPI_ERR_PROC_ABORTED : MPI_ERR_OTHER);
    }
    request.buffer = buffer;
    request.count = count;
    request.type = &type;
    request.peer = peer;
    request.bytes = unsent.bytes;
    request.context = channel.context();
    request.source_rank = channel.my_rank();
    request.destination = destination;
    request.tag = tag;
    request.sequence = peer->next_send++;
    request.moved = 0;
    request.retained = false;
    request.cancelling = false;
    request.withdrawn = false;
    link::count_message(*peer, unsent.eager ? size_of_eager(unsent.bytes) : profile::Size::large, unsent.bytes);
    request.stage = unsent.eager ? Stage::eager : Stage::envelope;
    start_queued(request);
    if (request.of_all && !request.done && failed_member(channel) >= 0) [[unlikely]]
        abandon_send(request);
}

void start_send(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count, const datatype::Datatype& type,
                int destination, int tag, SendMode mode) {
    request.done = false;
    request.outcome = Outcome{};
    request.synchronous = mode == SendMode::synchronous;
    Unsent unsent;
    if (send_at_once(channel, buffer, count, type, destination, tag, mode, unsent)) [[likely]]
        return request.complete();
    start_unsent(request, channel, buffer, count, type, destination, tag, unsent);
}

void start_eager_send(SendRequest& request, MatchContext& channel, const void* buffer, int64_t count,
                      const datatype::Datatype& type, int destination, int tag) {
    request.done = false;
    request.outcome = Outcome{};
    request.synchronous = false;
    const Unsent unsent{channel.peer(destination), datatype::packed_size(type, count), true};
    start_unsent(request, channel, buffer, count, type, destination, tag, unsent);
}

bool flush(link::Peer& peer) {
    while (!peer.sends.empty()) {
        if (!advance(*peer.sends.front())) return false;
        peer.sends.pop_front();
        --queued;
    }
    return true;
}

void on_fetched(link::Peer& peer, const Fin& fetched) {
    SendRequest* request = rendezvous::find_any(peer, fetched.serial);
    const bool with_receiver = request && (request->stage == Stage::offered || request->stage == Stage::written);
    if (!with_receiver && !(request && request->stream)) return;
    peer.expects = false;
    finish_offered(*request, MPI_SUCCESS);
}

void on_clear_to_stream(link::Peer& peer, const Cts& clear, const CtsRdmaWrite* may_write) {
    SendRequest* request = rendezvous::find_any(peer, clear.send_serial);
    if (!request || (request->stage != Stage::offered && request->stage != Stage::written)) return;
    if (may_write && request->stage == Stage::offered && rdma_write::begin(*request, *may_write)) {
        request->stage = Stage::written;
        return;
    }
    rdma_write::detach(*request);
    const bool streams = peer.supports(transport::kStreams);
    request->stage = streams ? Stage::stream : Stage::pieces;
    request->stream_to = clear.receive_serial;
    request->generation = clear.generation;
    request->bytes = std::min(request->bytes, clear.bytes);
    request->queued = false;
    peer.expects = clear.at_once != 0;
    if (!peer.expects) request->moved = 0;
    if (!streams || stream::begin(*request)) enqueue_cleared(*request);
}

void enqueue_cleared(SendRequest& request) {
    if (request.queued) return;
    enqueue(request);
    link::mark_pending(*request.peer);
}

namespace {

/// Returns why a send to a failed process fails. Sets the text anew for each request, because save_failure() moves it into the request.
int why_failed(const SendRequest& request) { return link::why_dead(*request.peer, request.destination); }

/// Empties a failed or finalized peer's queue. This completes only the eager sends; the others are still registered by rendezvous::list().
void empty_queue(link::Peer& peer, bool gone) {
    while (!peer.sends.empty()) {
        SendRequest* request = peer.sends.front();
        peer.sends.pop_front();
        --queued;
        request->queued = false;
        if (request->stage == Stage::eager) finish(*request, gone ? why_failed(*request) : MPI_SUCCESS);
    }
}

/// Returns whether a send belongs to a collective operation that has lost a member.
bool lacks_a_member(const SendRequest& request) {
    const MatchContext* channel = request.of_all ? directory.find(request.context) : nullptr;
    return channel && failed_member(*channel) >= 0;
}

/// Abandons the sends of collective operations that have lost a member, because their receivers may never send a CTS.
void abandon_collective_sends() {
    std::vector<SendRequest*> vain;
    rendezvous::each([&vain](SendRequest& request) {
        if (lacks_a_member(request)) vain.push_back(&request);
    });
    for (SendRequest* request : vain) abandon_send(*request);
}

}  // namespace

void fail_sends(const Gone& gone) {
    if (gone.peer)
        empty_queue(*gone.peer, true);
    else
        gone.job.each_peer([](link::Peer& peer) { empty_queue(peer, true); });
    rendezvous::each([&gone](SendRequest& request) {
        if (gone.includes(*request.peer)) finish_offered(request, why_failed(request));
    });
    abandon_collective_sends();
}

namespace {

/// Completes the sends to peers for which `over` holds: those in the peers' queues, and the rendezvous sends for which `in_vain` holds.
/// Returns true if there were any.
template <auto over, auto in_vain>
bool end_sends() {
    const size_t before = queued;
    std::vector<SendRequest*> offered;
    // Only collect the sends here, because the next loop removes them from their queues. They are completed after it.
    rendezvous::each([&offered](SendRequest& request) {
        if (over(*request.peer) && in_vain(request)) offered.push_back(&request);
    });
    link::each_pending([](link::Peer& peer) {
        if (over(peer)) empty_queue(peer, false);
    });
    for (SendRequest* request : offered) finish_offered(*request, MPI_SUCCESS);
    return queued != before || !offered.empty();
}

}  // namespace

void revoke_sends(uint64_t context) {
    std::vector<SendRequest*> pending;
    rendezvous::each([&](SendRequest& request) {
        if (same_communicator(request.context, context) && !request.orphaned) pending.push_back(&request);
    });
    // A completed request may be destroyed at once: its program may have freed the operation that it is a part of.
    for (SendRequest* request : pending)
        if (!request->has_cts()) abandon_send(*request, why_revoked());
    clear_failure();
}

namespace {

/// Abandons the sends that could not be abandoned when there was no memory for the copies of their data.
bool abandon_sends_again() {
    if (!std::exchange(lacked_memory, false)) return false;
    abandon_collective_sends();
    std::vector<uint64_t> revoked;
    rendezvous::each([&revoked](SendRequest& request) {
        const MatchContext* const channel = directory.find(request.context);
        if (channel && channel->revoked()) revoked.push_back(request.context);
    });
    for (const uint64_t context : revoked) revoke_sends(context);
    return true;
}

}  // namespace

void drop_sends_to_finalized() {
    link::each_pending([](link::Peer& peer) {
        if (!link::has_finalized(peer)) return;
        peer.controls.clear();
        peer.shm_path.close_pending = false;
    });
    end_sends<link::has_finalized, [](const SendRequest&) { return true; }>();
}

bool abandon_sends_to_finalized() {
    // A queued send to a finalized peer must be completed here, because no later event would do it. A peer that may return gets the message.
    return end_sends<[](const link::Peer& peer) { return !peer.dead && link::has_finalized_for_good(peer); },
                     [](const SendRequest& request) { return request.queued || lacks_a_member(request); }>();
}

void each_open_send(void (*visit)(const SendRequest& request, void* argument), void* argument) {
    // Visits only the eager sends of the queues. Rendezvous sends may be in a queue too, and are visited by request id.
    STARLING_STATE static decltype(visit) visitor = nullptr;
    STARLING_STATE static void* visitors_argument = nullptr;
    visitor = visit;
    visitors_argument = argument;
    link::each_pending([](link::Peer& peer) {
        for (const SendRequest* request : peer.sends)
            if (request->stage == Stage::eager) visitor(*request, visitors_argument);
    });
    rendezvous::each([&](SendRequest& request) { visit(request, argument); });
}

size_t open_sends() {
    size_t count = queued;
    rendezvous::each([&count](SendRequest&) { ++count; });
    return count;
}

}  // namespace starling::message
