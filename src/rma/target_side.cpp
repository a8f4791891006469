#include "rma/target_side.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "base/sanitizer.h"
#include "base/state.h"
#include "link/job.h"
#include "link/job_reclaim.h"
#include "link/transports.h"
#include "progress/engine.h"
#include "rma/access.h"
#include "rma/packets.h"
#include "rma/region.h"
#include "rma/update.h"
#include "transport/batch.h"

namespace starling::rma {

namespace {

/// An answer to an access, kept until all of it has been sent.
struct PendingReply {
    link::Peer* peer;
    AccessOperation operation;
    packet::AccessHeader header;
    std::span<const std::byte> data;  ///< remaining part of the result; it is in the region or, after a copy, in `kept`
    std::vector<std::byte> kept;
    uint64_t sent = 0;
};

STARLING_STATE std::deque<PendingReply>* answers = nullptr;
STARLING_STATE bool taking = false;

/// A packet whose region is not exposed yet. `hold` keeps the peer's job, so that the peer still exists when the region is exposed.
struct OutOfOrderAccesses {
    explicit OutOfOrderAccesses(link::Peer& its_peer) : peer(&its_peer), hold(&its_peer.job) {}
    link::Peer* peer;
    link::JobHold hold;
    uint32_t region = 0;
    alignas(packet::Header) std::byte header[sizeof(packet::Header)];
    std::vector<std::byte> payload;
};
STARLING_STATE std::deque<OutOfOrderAccesses>* out_of_order = nullptr;

/// Sends one packet of an answer. Returns false if the path to the peer has no space for it now.
bool send_some(PendingReply& answer) {
    const uint64_t left = answer.data.size() - answer.sent;
    const auto bytes = static_cast<uint32_t>(std::min<uint64_t>({left, link::payload_limit(*answer.peer), kMostCarried}));
    link::PacketSlot slot;
    if (!link::reserve(*answer.peer, bytes, slot)) return false;
    slot.header->kind = packet::PacketKind::access;
    const AccessOperation operation = bytes < left ? AccessOperation::some_data : answer.operation;
    slot.header->operation = static_cast<uint8_t>(operation);
    slot.header->access = answer.header;
    slot.header->access.offset += answer.sent;
    if (bytes) std::memcpy(slot.payload, answer.data.data() + answer.sent, bytes);
    link::commit(*answer.peer, slot, bytes);
    answer.sent += bytes;
    return true;
}

bool send_all(PendingReply& answer) {
    const transport::Batch together(answer.data.size() > kMostCarried ? link::network() : nullptr);
    do {
        if (!send_some(answer)) return false;
    } while (answer.sent < answer.data.size());
    return true;
}

void reply(PendingReply&& answer) {
    if (!answers) answers = new std::deque<PendingReply>;
    if (answers->empty() && send_all(answer)) return;
    // Copy the data, because the region may be withdrawn or changed before there is room.
    if (answer.kept.empty()) answer.kept.assign(answer.data.begin(), answer.data.end());
    answers->push_back(std::move(answer));
    answers->back().data = answers->back().kept;
}

/// Limit of the packets kept per peer and region. An origin has no more unanswered packets.
constexpr ptrdiff_t kMostEarly = kMostUnanswered;

/// Keeps a packet that arrived before its region was exposed or had its secret. Returns false, without keeping it, if the region is unknown
/// or accessible, or if kMostEarly packets of the peer are kept for the region.
bool store_early(link::Peer& peer, const link::Packet& packet) {
    AccessPacket asked;
    if (packet.header.bytes < sizeof asked) return false;
    std::memcpy(&asked, packet.payload, sizeof asked);
    if (!is_awaited(asked.region)) return false;
    if (!out_of_order) out_of_order = new std::deque<OutOfOrderAccesses>;
    const auto same = [&](const OutOfOrderAccesses& e) { return e.peer == &peer && e.region == asked.region; };
    if (std::count_if(out_of_order->begin(), out_of_order->end(), same) >= kMostEarly) return false;
    OutOfOrderAccesses& kept = out_of_order->emplace_back(peer);
    kept.region = asked.region;
    std::memcpy(kept.header, &packet.header, sizeof kept.header);
    kept.payload.assign(packet.payload, packet.payload + packet.header.bytes);
    return true;
}

/// The contents of a request packet, after they were checked.
struct Asked {
    AccessPacket packet;
    BlockRun runs[kMostRuns];
    const std::byte* data;
    uint64_t data_bytes;
    Region* region;
    Update update;
};

bool read_update(AccessOperation operation, Asked& asked) {
    const AccessPacket& packet = asked.packet;
    if (packet.element - 0x200u >= 0x100u || packet.op - 0x20u >= 0x20u) return false;
    const Datatype& element = datatype::predefined_types[packet.element - 0x200u];
    const Op& op = datatype::predefined_ops[packet.op - 0x20u];
    if (element.magic != Datatype::kMagic || element.size == 0) return false;
    asked.update = {&element, &op};
    if (operation == AccessOperation::compare_swap)
        return packet.runs == 1 && packet.bytes == element.size && asked.data_bytes == 2 * uint64_t{packet.bytes};
    if (op.magic != Op::kMagic || !datatype::op_valid_for_window(op, element)) return false;
    return asked.data_bytes == (op.operation == datatype::ReductionOperation::no_op ? 0 : packet.bytes);
}

/// Returns how many bytes of memory a run's data takes.
uint64_t span_of(const BlockRun& run, const Datatype* element) {
    if (!element || run.bytes == 0) return run.bytes;
    return memory_of(*element, static_cast<int64_t>(run.bytes / static_cast<uint64_t>(element->size)));
}

/// Reads and checks a request. Returns false if any field is invalid; nothing has been done then.
bool read(AccessOperation operation, const link::Packet& packet, Asked& asked) {
    const uint64_t bytes = packet.header.bytes;
    if (operation < AccessOperation::put || operation > AccessOperation::compare_swap || bytes < sizeof asked.packet)
        return false;
    std::memcpy(&asked.packet, packet.payload, sizeof asked.packet);
    const uint32_t count = asked.packet.runs;
    if (count > kMostRuns || asked.packet.bytes > kMostBytes || bytes - sizeof asked.packet < count * sizeof(BlockRun))
        return false;
    std::memcpy(asked.runs, packet.payload + sizeof asked.packet, count * sizeof(BlockRun));
    const uint64_t before = sizeof asked.packet + count * sizeof(BlockRun);
    asked.data = packet.payload + before;
    asked.data_bytes = bytes - before;
    asked.region = find_region(asked.packet.region, asked.packet.secret);
    if (!asked.region) return false;
    const bool plain = operation == AccessOperation::put || operation == AccessOperation::get;
    if (!plain && !read_update(operation, asked)) return false;
    if (plain && asked.data_bytes != (operation == AccessOperation::put ? asked.packet.bytes : 0)) return false;
    uint64_t sum = 0;
    for (const BlockRun& run : std::span(asked.runs, count)) {
        if (run.bytes > asked.packet.bytes - sum) return false;
        if (!plain && run.bytes % static_cast<uint64_t>(asked.update.element->size) != 0) return false;
        if (!asked.region->at(run.offset, span_of(run, asked.update.element))) return false;
        sum += run.bytes;
    }
    return sum == asked.packet.bytes;
}

void do_run(AccessOperation operation, const Asked& asked, const BlockRun& run, uint64_t done, std::byte* result) {
    if (run.bytes == 0) return;
    const AccessForOthers scope;
    std::byte* memory = asked.region->at(run.offset, span_of(run, asked.update.element));
    switch (operation) {
        case AccessOperation::put:
            std::memcpy(memory, asked.data + done, run.bytes);
            return;
        case AccessOperation::get:
            std::memcpy(result + done, memory, run.bytes);
            return;
        case AccessOperation::compare_swap:
            compare_and_swap(*asked.update.element, memory, asked.data, asked.data + run.bytes, result,
                             asked.region->exclusion);
            return;
        default: {
            const auto count = static_cast<int64_t>(run.bytes / static_cast<uint64_t>(asked.update.element->size));
            update(asked.update, memory, asked.data_bytes ? asked.data + done : nullptr, result ? result + done : nullptr,
                   count, asked.region->exclusion);
            return;
        }
    }
}

}  // namespace

void listen() { link::register_handler(packet::PacketKind::access, on_access_packet); }

void handle_accesses() {
    if (taking) return;
    taking = true;
    link::keep_mapped_jobs();
    listen();
    progress::add_poller(poll_accesses);
}

void carry_out_stored(uint32_t region) {
    if (!out_of_order) return;
    // Move the packets out first, because carrying one out may add others.
    std::deque<OutOfOrderAccesses> all = std::move(*out_of_order);
    out_of_order->clear();
    for (OutOfOrderAccesses& one : all) {
        if (one.region != region)
            out_of_order->push_back(std::move(one));
        else if (!one.peer->dead)
            carry_out(*one.peer, {*reinterpret_cast<packet::Header*>(one.header), one.payload.data()});
    }
}

AccessOperation do_access(const link::Packet& packet, std::vector<std::byte>& result) {
    const auto operation = static_cast<AccessOperation>(packet.header.operation);
    Asked asked{};
    if (!read(operation, packet, asked)) return AccessOperation::refused;
    const bool gives = operation == AccessOperation::get || operation == AccessOperation::fetch_update ||
                       operation == AccessOperation::compare_swap;
    if (gives) result.resize(asked.packet.bytes);
    uint64_t done = 0;
    for (const BlockRun& run : std::span(asked.runs, asked.packet.runs)) {
        do_run(operation, asked, run, done, gives ? result.data() : nullptr);
        done += run.bytes;
    }
    return gives ? AccessOperation::data : AccessOperation::done;
}

namespace {

/// Returns the memory of a get if it is one run, so that it is sent without a copy; otherwise empty.
std::span<const std::byte> one_block(const link::Packet& packet) {
    Asked asked{};
    if (static_cast<AccessOperation>(packet.header.operation) != AccessOperation::get ||
        !read(AccessOperation::get, packet, asked))
        return {};
    if (asked.packet.runs != 1) return {};
    return {asked.region->at(asked.runs[0].offset, asked.runs[0].bytes), asked.runs[0].bytes};
}

/// Answers a request for the region: registers it for the peer's device, or refuses.
void register_for_peer(link::Peer& peer, const link::Packet& packet) {
    PendingReply answer{&peer, AccessOperation::refused, packet.header.access, {}, {}};
    AccessPacket asked;
    if (packet.header.bytes >= sizeof asked) {
        std::memcpy(&asked, packet.payload, sizeof asked);
        Region* const region = find_region(asked.region, asked.secret);
        DeviceRegion lent;
        if (region && register_memory(*region, *peer.base, lent)) {
            answer.operation = AccessOperation::region;
            answer.kept.resize(sizeof lent);
            std::memcpy(answer.kept.data(), &lent, sizeof lent);
            answer.data = answer.kept;
        }
    }
    reply(std::move(answer));
}

}  // namespace

void carry_out(link::Peer& peer, const link::Packet& packet) {
    if (store_early(peer, packet)) return;
    // A process that exposes nothing must not queue answers, because the peers may be destroyed before the answers are sent.
    if (!taking) return;
    if (static_cast<AccessOperation>(packet.header.operation) == AccessOperation::request_region)
        return register_for_peer(peer, packet);
    PendingReply answer{&peer, AccessOperation::refused, packet.header.access, {}, {}};
    answer.data = one_block(packet);
    answer.operation = answer.data.empty() ? do_access(packet, answer.kept) : AccessOperation::data;
    if (answer.data.empty()) answer.data = answer.kept;
    if (answer.operation == AccessOperation::done) {
        AccessPacket asked;
        std::memcpy(&asked, packet.payload, sizeof asked);
        if (asked.settled_packets == 0) return;
        answer.header.offset = DoneCounts{asked.settled_packets, asked.settled_bytes}.word();
    }
    reply(std::move(answer));
}

bool poll_answers() {
    if (!answers) return false;
    bool any = false;
    while (!answers->empty() && (answers->front().peer->dead || send_all(answers->front()))) {
        answers->pop_front();
        any = true;
    }
    return any;
}

}  // namespace starling::rma
