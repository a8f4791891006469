#include "message/receive.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/no_destroy.h"
#include "base/reserve.h"
#include "base/state.h"
#include "datatype/datatype.h"
#include "link/manager.h"
#include "link/remote_peer.h"
#include "link/transports.h"
#include "message/closed_contexts.h"
#include "message/completion.h"
#include "message/context_table.h"
#include "message/match_or_cancel.h"
#include "message/point_to_point.h"
#include "message/protocol/both_sided.h"
#include "message/protocol/eager.h"
#include "message/protocol/incoming.h"
#include "message/protocol/stream.h"
#include "message/protocol/table.h"
#include "message/remote_cancel.h"
#include "message/revocation.h"
#include "message/send.h"
#include "message/senders.h"
#include "message/suspended_receive.h"
#include "message/wait_report.h"
#include "progress/coroutine_queue.h"
#include "progress/engine.h"

namespace starling::message {

namespace {

/// Messages for contexts that this process does not know yet, oldest first.
STARLING_STATE NoDestroy<std::vector<Unexpected*>> orphans_storage;
constinit auto& orphans = orphans_storage.value;
/// Whether any process has failed or any communicator was revoked.
STARLING_STATE bool any_loss = false;
STARLING_STATE Lazy<ClosedContexts> retired;

using FailureWatcher = void (*)();
STARLING_STATE FailureWatcher failure_watchers[2] = {};
STARLING_STATE size_t failure_watcher_count = 0;

/// The envelope of a message that is in a packet or was saved from one.
struct Envelope {
    link::Peer& peer;
    uint64_t context;
    int source;
    int tag;
    bool rendezvous;
    uint32_t bytes;  ///< length of the payload
    const std::byte* payload;
    bool was_out_of_order = false;
};

Rts offer_in(const Envelope& envelope) {
    Rts offer;
    std::memcpy(&offer, envelope.payload, sizeof offer);
    offer.reach = std::min(offer.reach, CopyPath::CacheDistance::far);  // it will be an index
    return offer;
}

/// Packets that arrived out of order, by sequence number.
struct OutOfOrderPackets {
    struct SavedPacket {
        packet::MessageHeader says;
        bool rendezvous;
        std::vector<std::byte> payload;
    };
    std::map<uint32_t, SavedPacket> packets;
};

[[gnu::noinline]] void receive_rendezvous(ReceiveRequest& request, link::Peer& peer, int source, int tag, const Rts& offer,
                                          bool at_once = false) {
    request.done = false;  // a receive that reports MPIX_ERR_PROC_FAILED_PENDING continues
    request.peer = &peer;
    request.outcome.source = source;
    request.outcome.tag = tag;
    request.outcome.error = MPI_SUCCESS;
    if (offer.bytes > request.capacity) [[unlikely]] {
        request.outcome.error = truncated(request, offer.bytes);
        save_failure(request);
    }
    // The transfer may outlast this call, so hold a reference of the type.
    if (!request.retained) {
        datatype::retain(*request.type);
        request.retained = true;
    }
    fetch({request, offer, std::min(offer.bytes, request.capacity), at_once});
}

constexpr RequestClass kDismissal{.dispose = [](Request& request) { delete static_cast<ReceiveRequest*>(&request); }};

/// Receives a message into a buffer of zero bytes, because no receive will take it and its sender waits for a match.
[[gnu::cold]] void dismiss(link::Peer& peer, int source, int tag, uint32_t sequence, const Rts& offer) {
    if (peer.dead || !match_verdict(peer, offer, sequence)) return;
    auto* request = new ReceiveRequest;
    request->type = &datatype::predefined(MPI_BYTE);
    request->operations = &kDismissal;
    request->orphaned = true;
    receive_rendezvous(*request, peer, source, tag, offer);
}

/// Stores a message for which no receive is posted. If std::bad_alloc is thrown, nothing has changed.
[[gnu::noinline]] void store(MatchContext* channel, const Envelope& envelope) {
    const Rts offer = envelope.rendezvous ? offer_in(envelope) : Rts{};
    const uint32_t sequence = envelope.peer.next_receive;
    if (envelope.rendezvous && was_cancelled(envelope.peer, offer, sequence)) return;
    const bool is_revoked = channel && channel->revoked();
    if (is_revoked && envelope.rendezvous) notify_of_revocation(envelope.peer, envelope.context);
    if (channel ? is_revoked : is_retired(envelope.context))
        return envelope.rendezvous ? dismiss(envelope.peer, envelope.source, envelope.tag, sequence, offer) : void();
    std::unique_ptr<std::byte[]> data;
    if (!envelope.rendezvous && envelope.bytes > sizeof Unexpected::small)
        data = std::make_unique_for_overwrite<std::byte[]>(envelope.bytes);
    if (!channel) make_room(orphans);
    Unexpected* message = unexpected_pool.create();
    message->channel = channel;
    message->peer = &envelope.peer;
    message->context = envelope.context;
    message->source = envelope.source;
    message->tag = envelope.tag;
    message->sequence = sequence;
    message->rendezvous = envelope.rendezvous;
    message->data = std::move(data);
    if (envelope.rendezvous) {
        message->offer = offer;
        message->bytes = offer.bytes;
    } else {
        message->bytes = envelope.bytes;
        if (envelope.bytes) std::memcpy(const_cast<std::byte*>(message->payload()), envelope.payload, envelope.bytes);
    }
    if (channel)
        channel->queues().add(*message);
    else
        orphans.push_back(message);
}

/// Matches the next message in order.
[[gnu::always_inline]] inline void match(const Envelope& envelope) {
    MatchContext* channel = directory.find(envelope.context);
    ReceiveRequest* request = channel ? channel->queues().find_posted(envelope.source, envelope.tag) : nullptr;
    if (!request) {
        const Envelope in_memory = envelope;  // a copy, so that the original can stay in registers
        return store(channel, in_memory);
    }
    if (!envelope.rendezvous) [[likely]] {
        request->hook.unlink();
        return eager::take(*request, envelope.source, envelope.tag, envelope.payload, envelope.bytes, &envelope.peer);
    }
    const Rts offer = offer_in(envelope);
    if (offer.has_verdict && !match_verdict(envelope.peer, offer, envelope.peer.next_receive)) return;
    request->hook.unlink();
    receive_rendezvous(*request, envelope.peer, envelope.source, envelope.tag, offer, !envelope.was_out_of_order);
}

[[gnu::noinline]] void store_early(link::Peer& peer, const link::Packet& packet) {
    const packet::Header& h = packet.header;
    if (!peer.out_of_order) peer.out_of_order = new OutOfOrderPackets;
    static_cast<OutOfOrderPackets*>(peer.out_of_order)
        ->packets.try_emplace(h.message.sequence, OutOfOrderPackets::SavedPacket{h.message,
                                                                                 h.kind == packet::PacketKind::rendezvous,
                                                                                 {packet.payload, packet.payload + h.bytes}});
}

[[gnu::noinline]] void match_out_of_order(link::Peer& peer) {
    auto& packets = static_cast<OutOfOrderPackets*>(peer.out_of_order)->packets;
    for (auto it = packets.find(peer.next_receive); it != packets.end(); it = packets.find(peer.next_receive)) {
        const OutOfOrderPackets::SavedPacket& kept = it->second;
        match({peer, kept.says.context, kept.says.source, kept.says.tag, kept.rendezvous,
               static_cast<uint32_t>(kept.payload.size()), kept.payload.data(), true});
        ++peer.next_receive;  // only after the match: if memory runs out, the packet is delivered again
        packets.erase(it);
    }
    if (packets.empty()) {
        delete static_cast<OutOfOrderPackets*>(peer.out_of_order);
        peer.out_of_order = nullptr;
    }
}

/// Copies the payload to `out`. Returns false if the packet is too short.
template <class T>
bool read(const link::Packet& packet, T& out) {
    if (packet.header.bytes < sizeof out) return false;
    std::memcpy(&out, packet.payload, sizeof out);
    return true;
}

/// Handles an RTS. If fragments follow it before a CTS, marks that they do not belong to the previous receive. Returns false if the packet
/// is malformed.
[[gnu::noinline]] bool note_offer(link::Peer& peer, const link::Packet& packet) {
    Rts offer;
    if (!read(packet, offer)) return false;
    if (offer.ahead) peer.ahead_generation = 0;
    return true;
}

[[gnu::noinline]] void deliver_control(link::Peer& peer, const link::Packet& packet);

void deliver(link::Peer& peer, link::Packet packet) {
    const packet::Header& h = packet.header;
    if (h.kind != packet::PacketKind::eager && h.kind != packet::PacketKind::rendezvous) return deliver_control(peer, packet);
    if (h.kind == packet::PacketKind::rendezvous && !note_offer(peer, packet)) return;
    if (h.message.sequence != peer.next_receive) [[unlikely]]
        return store_early(peer, packet);
    match({peer, h.message.context, h.message.source, h.message.tag, h.kind == packet::PacketKind::rendezvous, h.bytes,
           packet.payload});
    ++peer.next_receive;  // only after the match: if memory runs out, the packet is delivered again
    if (peer.out_of_order) [[unlikely]]
        match_out_of_order(peer);
}

void deliver_control(link::Peer& peer, const link::Packet& packet) {
    switch (packet.header.kind) {
        case packet::PacketKind::fetched: {
            Fin fetched;
            return read(packet, fetched) ? on_fetched(peer, fetched) : void();
        }
        case packet::PacketKind::clear_to_stream: {
            CtsRdmaWrite may_write;
            Cts clear;
            if (read(packet, may_write)) return on_clear_to_stream(peer, may_write.clear, &may_write);
            return read(packet, clear) ? on_clear_to_stream(peer, clear) : void();
        }
        case packet::PacketKind::share_copy: {
            ShareCopy share;
            return read(packet, share) ? both_sided::on_share(peer, share) : void();
        }
        case packet::PacketKind::fragment:
            return incoming::on_fragment(peer, packet);
        default:
            return;  // a later version's packet kind; no request of this version waits for one
    }
}

}  // namespace

void start() {
    link::upcalls.deliver = deliver;
    link::upcalls.flush = flush;
    link::upcalls.job_failed = fail_job;
    link::upcalls.peer_failed = fail_peer;
    link::upcalls.owes = [](const link::Job& job) {
        return std::any_of(orphans.begin(), orphans.end(),
                           [&job](const Unexpected* message) { return &message->peer->job == &job; });
    };
    link::upcalls.forget_peer = [](link::Peer& peer) {
        delete static_cast<OutOfOrderPackets*>(peer.out_of_order);
        peer.out_of_order = nullptr;
    };
    stream::listen();
    listen_for_cancels();
    listen_for_revocations();
    progress::teller_upcalls.messages = report_messages;
}

int why_sender_ended(MatchContext& channel, int source) {
    if (channel.revoked()) return why_revoked();
    if (source == MPI_ANY_SOURCE)
        return fail(MPI_ERR_PROC_ABORTED, senders_of(channel).has_unacknowledged_failure
                                              ? "a rank that could have sent the message has ended"
                                              : "all other ranks have ended, so none can send the message");
    const link::Process& process = channel.roster().at(source);
    if (const link::Peer* peer = process.job->find_peer(process.rank)) return link::why_dead(*peer, source);
    return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended, with its whole job", source);
}

bool is_retired(uint64_t context) { return retired.get().contains(context >> kPlaneBits); }

void retire_context(uint64_t context) {
    retired.get().add(context >> kPlaneBits);
    std::erase_if(orphans, [context](Unexpected* message) {
        if (message->context >> kPlaneBits != context >> kPlaneBits) return false;
        throw_away(*message);
        return true;
    });
}

void throw_away(Unexpected& message) {
    if (message.rendezvous) dismiss(*message.peer, message.source, message.tag, message.sequence, message.offer);
    unexpected_pool.destroy(&message);
}

Withdrawn withdraw(const link::Peer& peer, uint64_t context, uint32_t sequence) {
    if (static_cast<int32_t>(sequence - peer.next_receive) >= 0) return Withdrawn::not_arrived;
    const auto is_meant = [&](const Unexpected& message) {
        return message.rendezvous && message.peer == &peer && message.context == context && message.sequence == sequence;
    };
    if (MatchContext* channel = directory.find(context)) {
        auto& kept = channel->queues().arrival;
        Unexpected* message = kept.front();
        while (message && !is_meant(*message)) message = kept.next(message);
        if (!message) return Withdrawn::already_matched;
        MatchQueues::remove(*message);
        unexpected_pool.destroy(message);
        return Withdrawn::yes;
    }
    const auto found =
        std::find_if(orphans.begin(), orphans.end(), [&](const Unexpected* message) { return is_meant(*message); });
    if (found == orphans.end()) return Withdrawn::already_matched;
    unexpected_pool.destroy(*found);
    orphans.erase(found);
    return Withdrawn::yes;
}

void orphan_messages(MatchContext& channel) {
    MatchQueues& queues = channel.queues();
    while (Unexpected* message = queues.arrival.front()) {
        MatchQueues::remove(*message);
        message->channel = nullptr;
        orphans.push_back(message);
    }
}

int failed_member(const MatchContext& channel) {
    for (int r = 0; any_loss && r < channel.roster().size(); ++r)
        if (link::has_failed(channel.roster().at(r))) return r;
    return -1;
}

int why_member_failed(MatchContext& channel) {
    if (channel.revoked()) return why_revoked();
    const int rank = failed_member(channel);
    return rank < 0 ? MPI_ERR_PROC_ABORTED : why_sender_ended(channel, rank);
}

namespace {

/// Returns whether a receive from MPI_ANY_SOURCE may get a message from the own rank, although it has no other sender.
[[gnu::cold]] bool may_get_own_message(const ReceiveRequest& request) {
    if (request.source != MPI_ANY_SOURCE || request.magic != Request::kMagic || request.channel->revoked()) return false;
    const Senders senders = senders_of(*request.channel);
    return senders.has_own_rank && senders.has_failure && !senders.has_unacknowledged_failure;
}

}  // namespace

bool is_in_vain(const ReceiveRequest& request) {
    if (request.of_all && failed_member(*request.channel) >= 0) return true;
    return sender_ended(*request.channel, request.source) && !may_get_own_message(request);
}

namespace {

int why_in_vain(const ReceiveRequest& request) {
    if (sender_ended(*request.channel, request.source)) return why_sender_ended(*request.channel, request.source);
    return fail(MPI_ERR_PROC_ABORTED, "a collective operation failed: member %d has ended", failed_member(*request.channel));
}

}  // namespace

bool sender_ended(MatchContext& channel, int source) {
    if (!any_loss) return false;
    if (channel.revoked()) return true;
    if (source != MPI_ANY_SOURCE) return link::has_failed_or_ended(channel.roster().at(source));
    const Senders senders = senders_of(channel);
    return senders.has_unacknowledged_failure || (senders.has_ended && !senders.may_send);
}

bool sender_failed(MatchContext& channel, int source) {
    if (!any_loss) return false;
    if (channel.revoked()) return true;
    if (source == MPI_ANY_SOURCE) return senders_of(channel).has_unacknowledged_failure;
    return link::has_failed(channel.roster().at(source));
}

void adopt_orphans(MatchContext& channel) {
    if (orphans.empty()) return;
    std::erase_if(orphans, [&channel](Unexpected* message) {
        if (message->context != channel.context()) return false;
        message->channel = &channel;
        channel.queues().add(*message);
        return true;
    });
}

Unexpected* find_unexpected(MatchContext& channel, int source, int tag, ProbeMode look) {
    Unexpected* message;
    while ((message = channel.queues().find(source, tag)) && message->rendezvous) {
        const bool is_there = look == ProbeMode::to_take ? match_verdict(*message->peer, message->offer, message->sequence)
                                                         : !was_cancelled(*message->peer, message->offer, message->sequence);
        if (is_there) break;
        MatchQueues::remove(*message);
        unexpected_pool.destroy(message);
    }
    return message;
}

void receive_unexpected(ReceiveRequest& request, Unexpected& message) {
    if (message.rendezvous)
        receive_rendezvous(request, *message.peer, message.source, message.tag, message.offer);
    else
        eager::take(request, message.source, message.tag, message.payload(), message.bytes, nullptr);
    unexpected_pool.destroy(&message);
}

void prepare_receive(ReceiveRequest& request, MatchContext& channel, void* buffer, int64_t count,
                     const datatype::Datatype& type) {
    request.done = false;
    request.retained = false;
    request.outcome = Outcome{};
    request.buffer = buffer;
    request.count = count;
    request.type = &type;
    request.channel = &channel;
    request.capacity = datatype::packed_size(type, count);
}

namespace {

/// Returns the first message for a receive in vain from MPI_ANY_SOURCE that this process has sent to itself and not polled yet. Null if there is
/// none, or if the communicator is revoked. The messages of others were polled before their ends were reported.
[[gnu::cold]] Unexpected* find_own_message(const ReceiveRequest& request) {
    MatchContext& channel = *request.channel;
    if (request.source != MPI_ANY_SOURCE || channel.revoked() || !senders_of(channel).has_own_rank) return nullptr;
    link::poll();
    link::poll_transports(transport::Transport::PollUrgency::now);
    return find_unexpected(channel, request.source, request.tag, ProbeMode::to_take);
}

}  // namespace

void start_receive(ReceiveRequest& request, MatchContext& channel, void* buffer, int64_t count, const datatype::Datatype& type,
                   int source, int tag) {
    prepare_receive(request, channel, buffer, count, type);
    request.source = source;
    request.tag = tag;
    MatchQueues& queues = channel.queues();
    if (Unexpected* message = find_unexpected(channel, source, tag, ProbeMode::to_take)) {
        MatchQueues::remove(*message);
        return receive_unexpected(request, *message);
    }
    const bool in_vain = any_loss && is_in_vain(request);
    if (in_vain && !can_suspend(request)) [[unlikely]] {
        if (Unexpected* message = find_own_message(request)) {
            MatchQueues::remove(*message);
            return receive_unexpected(request, *message);
        }
        return finish(request, why_in_vain(request));
    }
    if (!type.predefined) {
        datatype::retain(type);
        request.retained = true;
    }
    queues.post(request);
    if (in_vain) suspend(request);
}

void start_matched_receive(ReceiveRequest& request, Unexpected& message, void* buffer, int64_t count,
                           const datatype::Datatype& type) {
    prepare_receive(request, *message.channel, buffer, count, type);
    receive_unexpected(request, message);
}

bool cancel_receive(ReceiveRequest& request) {
    if (is_suspended(request)) resume(request);
    if (request.done || !request.hook.linked()) return false;
    request.hook.unlink();
    request.outcome.cancelled = true;
    finish(request, MPI_SUCCESS);
    return true;
}

bool cancel_programs_receive(ReceiveRequest& request) {
    if (!request.done || is_suspended(request)) return cancel_receive(request);
    const bool in_vain = request.outcome.error == MPI_ERR_PROC_ABORTED && !sender_failed(*request.channel, request.source);
    if (!in_vain) return false;
    progress::recall_failure(request);
    clear_failure();
    request.outcome = Outcome{.cancelled = true};
    return true;
}

bool any_failure() { return any_loss; }

namespace {

/// Adds the posted receives of the context that can no longer complete.
void collect_in_vain(MatchContext& channel, std::vector<ReceiveRequest*>& lost) {
    auto collect = [&](auto& list) {
        for (ReceiveRequest* r = list.front(); r; r = list.next(r))
            if (is_in_vain(*r)) lost.push_back(r);
    };
    for (auto& list : channel.queues().posted) collect(list);
    collect(channel.queues().posted_any);
}

// The receives were collected first, because the completion of one may post another. (A coroutine does not run at once; it is scheduled.)
void end_in_vain(const std::vector<ReceiveRequest*>& lost) {
    for (ReceiveRequest* request : lost) {
        if (can_suspend(*request)) {
            suspend(*request);
            continue;
        }
        request->hook.unlink();
        finish(*request, why_in_vain(*request));
    }
}

}  // namespace

void fail_receives() {
    std::vector<ReceiveRequest*> lost;
    directory.each([&](MatchContext& channel) { collect_in_vain(channel, lost); });
    end_in_vain(lost);
}

namespace {

void fail_ended(const Gone& gone) {
    any_loss = true;
    progress::add_poller(abandon_sends_to_finalized);
    fail_sends(gone);
    fail_fetches(gone);
    fail_receives();
    repeat_revocations();
    for (size_t i = 0; i < failure_watcher_count; ++i) failure_watchers[i]();
}

}  // namespace

void watch_failures(void (*watcher)()) {
    auto* const end = failure_watchers + failure_watcher_count;
    if (std::find(failure_watchers, end, watcher) != end) return;
    if (failure_watcher_count == std::size(failure_watchers))
        panic("more functions watch failures than message/receive.cpp has room for");
    failure_watchers[failure_watcher_count++] = watcher;
}

void end_receives_of(MatchContext& channel) {
    any_loss = true;
    while (Unexpected* message = channel.queues().arrival.front()) {
        MatchQueues::remove(*message);
        if (message->rendezvous) notify_of_revocation(*message->peer, message->context);
        throw_away(*message);
    }
    std::vector<ReceiveRequest*> lost;
    collect_in_vain(channel, lost);
    end_in_vain(lost);
}

void fail_job(link::Job& job) { fail_ended({job}); }

void fail_peer(link::Peer& peer) { fail_ended({peer.job, &peer}); }

}  // namespace starling::message
