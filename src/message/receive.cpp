#include "message/receive.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "base/immortal.h"
#include "datatype/datatype.h"
#include "link/remote.h"
#include "message/directory.h"
#include "message/point_to_point.h"
#include "message/retired.h"
#include "message/send.h"
#include "message/split.h"
#include "message/streams.h"
#include "message/tell.h"
#include "progress/idle.h"
#include "progress/ready.h"
#include "transport/shm/kernel_copy.h"

namespace starling::message {

namespace {

/// Messages for contexts that this process does not know yet, oldest first.
constinit Immortal<std::vector<Unexpected*>> orphans_storage;
constinit auto& orphans = orphans_storage.value;
bool anyone_failed = false;
Retired& retired() {
    static auto* const contexts = new Retired;
    return *contexts;
}
constexpr int kPlaneBits = 4;  ///< of a context: comm/comm.h

/// What a message says of itself, whether it lies in a packet or was kept.
struct Envelope {
    link::Peer& peer;
    uint64_t context;
    int source;
    int tag;
    bool rendezvous;
    uint32_t bytes;  ///< of payload
    const std::byte* payload;
    bool was_early = false;
};

/// Packets that came ahead of their turn, by sequence number.
struct Early {
    struct Kept {
        packet::Message says;
        bool rendezvous;
        std::vector<std::byte> payload;
    };
    std::map<uint32_t, Kept> packets;
};

void finish(ReceiveRequest& request, int error) {
    if (request.retained) datatype::release(*request.type);
    request.retained = false;
    if (error && error != request.outcome.error) [[unlikely]]
        keep_failure(request);  // else it was when it failed
    request.outcome.error = error;
    request.complete();
}

int truncated(const ReceiveRequest& request, uint64_t bytes) {
    return fail(MPI_ERR_TRUNCATE, "a message of %llu bytes from rank %d with tag %d does not fit into a buffer of %llu bytes",
                static_cast<unsigned long long>(bytes), request.outcome.source, request.outcome.tag,
                static_cast<unsigned long long>(request.capacity));
}

[[gnu::noinline, gnu::cold]] void take_too_long(ReceiveRequest& request, const std::byte* payload, uint64_t bytes) {
    datatype::unpack(*request.type, request.count, request.buffer, 0, payload, request.capacity);
    request.outcome.bytes = request.capacity;
    finish(request, truncated(request, bytes));
}

[[gnu::always_inline]] inline void take_eager(ReceiveRequest& request, int source, int tag, const std::byte* payload,
                                              uint64_t bytes) {
    request.outcome.source = source;
    request.outcome.tag = tag;
    if (bytes > request.capacity) [[unlikely]]
        return take_too_long(request, payload, bytes);
    datatype::unpack_short(*request.type, request.count, request.buffer, payload, bytes);
    request.outcome.bytes = bytes;
    finish(request, MPI_SUCCESS);
}

/// Copies `bytes` from the sender's memory. 0 or an errno value.
int copy_from_sender(ReceiveRequest& request, const Offer& offer, uint64_t bytes) {
    if (bytes == 0) return 0;
    if (datatype::is_block(*request.type, request.count)) {
        const iovec block{datatype::block_address(*request.type, request.buffer), bytes};
        return shm::read_remote(offer.pid, offer.address, &block, 1, bytes);
    }
    constexpr int kMost = 512;
    iovec list[kMost];
    for (uint64_t at = 0; at < bytes;) {
        const int n = datatype::blocks(*request.type, request.count, request.buffer, at, list, kMost);
        uint64_t sum = 0;
        for (int i = 0; i < n; ++i) {
            list[i].iov_len = std::min<uint64_t>(list[i].iov_len, bytes - at - sum);
            sum += list[i].iov_len;
        }
        if (const int error = shm::read_remote(offer.pid, offer.address + at, list, static_cast<size_t>(n), sum)) return error;
        at += sum;
    }
    return 0;
}

bool single_copy_allowed() { return config().single_copy != SingleCopy::off; }

/// Whether the message would come through the ring without delay: its sender waits in the library, has a core, and is not
/// busy fetching from us. Then that is faster than the kernel's copy, whose reading takes what the sender has just written
/// from its cache line by line.
bool streams_well(const link::Peer& peer, const Offer& offer, uint64_t bytes) {
    const uint64_t limit = offer.reach == CopyPath::Reach::far ? config().stream_limit / 4 : config().stream_limit;
    if (limit == 0 || (bytes > limit && offer.reach != CopyPath::Reach::close)) return false;
    if (progress::core_is_crowded() || peer.open_offers > 1) return false;
    return offer.waits || peer.region.counters()->waiting != 0;
}

/// Whether the sender has let a message go since it made the offer, perhaps this one.
bool let_go_since(const link::Peer& peer, const Offer& offer) {
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return static_cast<uint32_t>(peer.region.counters()->let_go) != offer.let_go;
}

/// The copy of a message has ended with `error` (an errno value): completes the receive, or finds another way.
void after_copy(ReceiveRequest& request, const Offer& offer, int error) {
    const uint64_t bytes = std::min(offer.bytes, request.capacity);
    // Forbidden, or memory that the kernel can't reach but the sender can (a device's, say).
    if (error && error != ESRCH) return ask_for_pieces(request, offer, bytes);
    // Read while the sender's program took its buffer back: what was read may be something else.
    if (!error && bytes > 0 && let_go_since(*request.peer, offer)) return ask_for_pieces(request, offer, bytes);
    if (error) {
        return finish(request, fail(MPI_ERR_PROC_ABORTED, "rank %d ended before its message of %llu bytes was read",
                                    request.outcome.source, static_cast<unsigned long long>(offer.bytes)));
    }
    const Fetched fetched{offer.serial};
    link::send_control(*request.peer, packet::Kind::fetched, &fetched, sizeof fetched);
    request.outcome.bytes = bytes;
    finish(request, request.outcome.error);
}

[[gnu::noinline]] void take_rendezvous(ReceiveRequest& request, link::Peer& peer, int source, int tag, const Offer& offer,
                                       bool at_once = false) {
    request.peer = &peer;
    request.outcome.source = source;
    request.outcome.tag = tag;
    request.outcome.error = MPI_SUCCESS;
    if (offer.bytes > request.capacity) [[unlikely]] {
        request.outcome.error = truncated(request, offer.bytes);
        keep_failure(request);
    }
    const uint64_t bytes = std::min(offer.bytes, request.capacity);
    // The data may be under way for a while from here on.
    if (!request.retained) {
        datatype::retain(*request.type);
        request.retained = true;
    }
    if (peer.dead) return after_copy(request, offer, ESRCH);  // its pid may be another's by now
    const bool must_stream = peer.remote || !offer.address || !single_copy_allowed();
    if (bytes > 0 && (must_stream || streams_well(peer, offer, bytes))) return ask_for_pieces(request, offer, bytes, at_once);
    if (datatype::is_block(*request.type, request.count)) {
        void* target = datatype::block_address(*request.type, request.buffer);
        const int error = start_split(request, offer, target, bytes, after_copy);
        if (error != EAGAIN) return error ? after_copy(request, offer, error) : void();
    }
    after_copy(request, offer, copy_from_sender(request, offer, bytes));
}

[[gnu::noinline]] void keep(Channel* channel, const Envelope& envelope) {
    if (!channel && retired().contains(envelope.context >> kPlaneBits)) return;  // nobody will ever receive it
    Unexpected* message = unexpected_pool.create();
    message->channel = channel;
    message->peer = &envelope.peer;
    message->context = envelope.context;
    message->source = envelope.source;
    message->tag = envelope.tag;
    message->rendezvous = envelope.rendezvous;
    if (envelope.rendezvous) {
        std::memcpy(&message->offer, envelope.payload, sizeof(Offer));
        message->bytes = message->offer.bytes;
    } else {
        message->bytes = envelope.bytes;
        if (envelope.bytes > sizeof message->small) message->data = std::make_unique_for_overwrite<std::byte[]>(envelope.bytes);
        if (envelope.bytes) std::memcpy(const_cast<std::byte*>(message->payload()), envelope.payload, envelope.bytes);
    }
    if (channel)
        channel->queues().add(*message);
    else
        orphans.push_back(message);
}

/// A message whose turn it is.
[[gnu::always_inline]] inline void match(const Envelope& envelope) {
    Channel* channel = directory.find(envelope.context);
    ReceiveRequest* request = channel ? channel->queues().take_posted(envelope.source, envelope.tag) : nullptr;
    if (!request) {
        const Envelope in_memory = envelope;  // a copy, so that the original can stay in registers
        return keep(channel, in_memory);
    }
    if (!envelope.rendezvous) [[likely]]
        return take_eager(*request, envelope.source, envelope.tag, envelope.payload, envelope.bytes);
    Offer offer;
    std::memcpy(&offer, envelope.payload, sizeof offer);
    take_rendezvous(*request, envelope.peer, envelope.source, envelope.tag, offer, !envelope.was_early);
}

[[gnu::noinline]] void keep_early(link::Peer& peer, const link::Packet& packet) {
    const packet::Header& h = packet.header;
    if (!peer.early) peer.early = new Early;
    static_cast<Early*>(peer.early)
        ->packets.try_emplace(
            h.message.sequence,
            Early::Kept{h.message, h.kind == packet::Kind::rendezvous, {packet.payload, packet.payload + h.bytes}});
}

[[gnu::noinline]] void match_early(link::Peer& peer) {
    auto& packets = static_cast<Early*>(peer.early)->packets;
    for (auto it = packets.find(peer.next_receive); it != packets.end(); it = packets.find(peer.next_receive)) {
        const Early::Kept& kept = it->second;
        match({peer, kept.says.context, kept.says.source, kept.says.tag, kept.rendezvous,
               static_cast<uint32_t>(kept.payload.size()), kept.payload.data(), true});
        ++peer.next_receive;  // as in deliver()
        packets.erase(it);
    }
    if (packets.empty()) {
        delete static_cast<Early*>(peer.early);
        peer.early = nullptr;
    }
}

/// False if the packet is shorter than what it should hold.
template <class T>
bool read(const link::Packet& packet, T& out) {
    if (packet.header.bytes < sizeof out) return false;
    std::memcpy(&out, packet.payload, sizeof out);
    return true;
}

/// The pieces that follow this offer unasked are not those of the last one. False if it is broken.
[[gnu::noinline]] bool note_offer(link::Peer& peer, const link::Packet& packet) {
    Offer offer;
    if (!read(packet, offer)) return false;
    if (offer.ahead) peer.ahead_generation = 0;
    return true;
}

[[gnu::noinline]] void deliver_control(link::Peer& peer, const link::Packet& packet);

void deliver(link::Peer& peer, link::Packet packet) {
    const packet::Header& h = packet.header;
    if (h.kind != packet::Kind::eager && h.kind != packet::Kind::rendezvous) return deliver_control(peer, packet);
    if (h.kind == packet::Kind::rendezvous && !note_offer(peer, packet)) return;
    if (h.message.sequence != peer.next_receive) [[unlikely]]
        return keep_early(peer, packet);
    match({peer, h.message.context, h.message.source, h.message.tag, h.kind == packet::Kind::rendezvous, h.bytes,
           packet.payload});
    ++peer.next_receive;  // not before: what fails for want of memory comes again
    if (peer.early) [[unlikely]]
        match_early(peer);
}

void deliver_control(link::Peer& peer, const link::Packet& packet) {
    switch (packet.header.kind) {
        case packet::Kind::fetched: {
            Fetched fetched;
            return read(packet, fetched) ? on_fetched(peer, fetched.serial) : void();
        }
        case packet::Kind::clear_to_stream: {
            ClearToStream clear;
            if (!read(packet, clear)) return;
            return on_clear_to_stream(peer, clear);
        }
        case packet::Kind::share_copy: {
            Share share;
            return !peer.remote && read(packet, share) ? on_share_copy(peer, share) : void();
        }
        case packet::Kind::piece:
            return on_piece(peer, packet);
        default:
            return;  // a kind of a later version: nothing of ours waits for it
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
        delete static_cast<Early*>(peer.early);
        peer.early = nullptr;
    };
    start_streams(enqueue_stream);
    progress::teller_upcalls.messages = tell_messages;
}

namespace {
bool is_gone(const link::Process& process) {
    if (process.job->dead()) return true;
    const link::Peer* peer = process.job->peer_if_met(process.rank);
    return peer && peer->dead;
}

int sender_has_ended(Channel& channel, int source) {
    if (source == MPI_ANY_SOURCE) return fail(MPI_ERR_PROC_ABORTED, "a rank that could have sent the message has ended");
    const link::Process& process = channel.roster().at(source);
    if (const link::Peer* peer = process.job->peer_if_met(process.rank)) return link::why_dead(*peer, source);
    return fail(MPI_ERR_PROC_ABORTED, "rank %d has ended: its job is gone", source);
}

}  // namespace

void retire_context(uint64_t context) {
    retired().add(context >> kPlaneBits);
    std::erase_if(orphans, [context](Unexpected* message) {
        if (message->context >> kPlaneBits != context >> kPlaneBits) return false;
        unexpected_pool.destroy(message);
        return true;
    });
}

void orphan_messages(Channel& channel) {
    MatchQueues& queues = channel.queues();
    while (Unexpected* message = queues.arrival.front()) {
        MatchQueues::take(*message);
        message->channel = nullptr;
        orphans.push_back(message);
    }
}

void finish_receive(ReceiveRequest& request, int error) { finish(request, error); }

bool sender_gone(Channel& channel, int source) {
    if (!anyone_failed) return false;
    if (source != MPI_ANY_SOURCE) return is_gone(channel.roster().at(source));
    for (int r = 0; r < channel.roster().size(); ++r)
        if (is_gone(channel.roster().at(r))) return true;
    return false;
}

void adopt_orphans(Channel& channel) {
    if (orphans.empty()) return;
    std::erase_if(orphans, [&channel](Unexpected* message) {
        if (message->context != channel.context()) return false;
        message->channel = &channel;
        channel.queues().add(*message);
        return true;
    });
}

void receive_unexpected(ReceiveRequest& request, Unexpected& message) {
    if (message.rendezvous)
        take_rendezvous(request, *message.peer, message.source, message.tag, message.offer);
    else
        take_eager(request, message.source, message.tag, message.payload(), message.bytes);
    unexpected_pool.destroy(&message);
}

void prepare_receive(ReceiveRequest& request, Channel& channel, void* buffer, int64_t count, const datatype::Datatype& type) {
    request.done = false;
    request.retained = false;
    request.outcome = Outcome{};
    request.buffer = buffer;
    request.count = count;
    request.type = &type;
    request.channel = &channel;
    request.capacity = datatype::packed_size(type, count);
}

void start_receive(ReceiveRequest& request, Channel& channel, void* buffer, int64_t count, const datatype::Datatype& type,
                   int source, int tag) {
    prepare_receive(request, channel, buffer, count, type);
    request.source = source;
    request.tag = tag;
    MatchQueues& queues = channel.queues();
    if (Unexpected* message = queues.find(source, tag)) {
        MatchQueues::take(*message);
        return receive_unexpected(request, *message);
    }
    if (anyone_failed && sender_gone(channel, source)) [[unlikely]]
        return finish(request, sender_has_ended(channel, source));
    if (!type.predefined) {
        datatype::retain(type);
        request.retained = true;
    }
    queues.post(request);
}

void start_matched_receive(ReceiveRequest& request, Unexpected& message, void* buffer, int64_t count,
                           const datatype::Datatype& type) {
    prepare_receive(request, *message.channel, buffer, count, type);
    receive_unexpected(request, message);
}

bool cancel_receive(ReceiveRequest& request) {
    if (request.done || !request.hook.linked()) return false;
    request.hook.unlink();
    request.outcome.cancelled = true;
    finish(request, MPI_SUCCESS);
    return true;
}

namespace {

/// Fails the receives whose messages can't come any more.
void fail_receives() {
    // Completing a receive may post another (a coroutine never does so at once, but schedules itself), so
    // collect first.
    std::vector<ReceiveRequest*> lost;
    directory.each([&](Channel& channel) {
        auto collect = [&](auto& list) {
            for (ReceiveRequest* r = list.front(); r; r = list.next(r))
                if (sender_gone(channel, r->source)) lost.push_back(r);
        };
        for (auto& list : channel.queues().posted) collect(list);
        collect(channel.queues().posted_any);
    });
    for (ReceiveRequest* request : lost) {
        request->hook.unlink();
        finish(*request, sender_has_ended(*request->channel, request->source));
    }
}

}  // namespace

void fail_job(link::Job& job) {
    anyone_failed = true;
    fail_sends(job);
    fail_splits(job);
    fail_streams([](const link::Peer& peer, const void* gone) { return static_cast<const void*>(&peer.job) == gone; }, &job);
    fail_receives();
}

void fail_peer(link::Peer& peer) {
    anyone_failed = true;
    fail_sends(peer);
    fail_splits(peer);
    fail_streams([](const link::Peer& other, const void* gone) { return static_cast<const void*>(&other) == gone; }, &peer);
    fail_receives();
}

}  // namespace starling::message
