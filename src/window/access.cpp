// The side that asks.
#include "window/access.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/immortal.h"
#include "base/state.h"
#include "message/serials.h"
#include "progress/engine.h"
#include "window/owner.h"
#include "window/packets.h"

namespace starling::window {

namespace {

/// Packets of one access under way at most: an owner that is slow to answer is not flooded.
constexpr uint32_t kMostUnanswered = 32;

using Accesses = List<Access, &Access::hook>;
STARLING_STATE Accesses* under_way = nullptr;
STARLING_STATE Immortal<message::Serials<Access>> serials_storage;
constinit auto& serials = serials_storage.value;
STARLING_STATE uint32_t last_generation = 0;

uint64_t data_per_packet(const link::Peer& owner) { return link::payload_limit(owner) - sizeof(AccessPacket); }

void finish(Access& access, int error) {
    access.hook.unlink();
    serials.remove(access.serial);
    access.outcome.error = error;
    access.complete();
}

/// One packet; false if there is no room now.
bool issue(Access& access) {
    const bool put = access.access == Access::Kind::put, update = access.access == Access::Kind::update;
    const uint64_t bytes = update ? access.width : std::min(access.bytes - access.issued, data_per_packet(*access.owner));
    const auto payload = static_cast<uint32_t>(sizeof(AccessPacket) + (put ? bytes : 0));
    link::Slot slot;
    if (!link::reserve(*access.owner, payload, slot)) return false;
    const auto operation = put ? Operation::put : update ? Operation::update : Operation::get;
    write_header(*slot.header, operation, {access.generation, access.serial, access.offset + access.issued});
    const AccessPacket packet{access.exposure.key, access.exposure.id, static_cast<uint32_t>(bytes),         access.issued,
                              access.operand,      access.compare,     static_cast<uint32_t>(access.update), 0};
    std::memcpy(slot.payload, &packet, sizeof packet);
    if (put) std::memcpy(slot.payload + sizeof packet, access.memory + access.issued, bytes);
    link::commit(*access.owner, slot, payload);
    access.issued += bytes;
    ++access.unanswered;
    return true;
}

bool advance(Access& access) {
    bool any = false;
    while (access.issued < access.bytes && access.unanswered < kMostUnanswered && issue(access)) any = true;
    return any;
}

bool poll_accesses() {
    bool any = poll_answers();
    for (Access* access = under_way->front(); access;) {
        Access* next = under_way->next(access);
        if (access->owner->dead) {
            finish(*access, fail(MPI_ERR_PROC_ABORTED, "rank %u has ended while its memory was accessed", access->owner->rank));
            any = true;
        } else {
            any |= advance(*access);
        }
        access = next;
    }
    return any;
}

void begin(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, uint64_t bytes) {
    start_accesses();
    access.done = false;
    access.outcome = progress::Outcome{};
    access.owner = &owner;
    access.exposure = exposure;
    access.offset = offset;
    access.bytes = bytes;
    access.issued = 0;
    access.unanswered = 0;
    access.serial = serials.add(access);
    access.generation = ++last_generation;
    under_way->push_back(&access);
    if (offset > exposure.bytes || bytes > exposure.bytes - offset) {
        return finish(access, fail(MPI_ERR_RMA_RANGE, "an access of %llu bytes at %llu leaves an exposure of %llu bytes",
                                   static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
                                   static_cast<unsigned long long>(exposure.bytes)));
    }
    if (bytes == 0) return finish(access, MPI_SUCCESS);
    if (!owner.dead) advance(access);  // else the next poll finds it
}

void refused(Access& access) {
    finish(access, fail(MPI_ERR_RMA_RANGE, "rank %u has refused an access to its memory: the exposure was withdrawn",
                        access.owner->rank));
}

}  // namespace

void start_accesses() {
    if (under_way) return;
    under_way = new Accesses;
    link::take_packets(packet::Kind::access, on_access_packet);
    progress::add_poller(poll_accesses);
}

void on_answer(link::Peer& peer, const link::Packet& packet) {
    const packet::Access answered = packet.header.access;
    Access* access = serials.find(answered.serial);
    if (!access || access->owner != &peer || access->generation != answered.generation) return;
    const uint64_t at = answered.offset, bytes = packet.header.bytes;
    switch (static_cast<Operation>(packet.header.operation)) {
        case Operation::get_data:
            if (access->access != Access::Kind::get || at > access->bytes || bytes > access->bytes - at) return;
            std::memcpy(access->memory + at, packet.payload, bytes);
            break;
        case Operation::update_done:
            if (access->access != Access::Kind::update || bytes != sizeof access->old) return;
            std::memcpy(&access->old, packet.payload, sizeof access->old);
            break;
        case Operation::put_done:
            break;
        default:
            return refused(*access);
    }
    --access->unanswered;
    if (access->unanswered == 0 && access->issued == access->bytes) return finish(*access, MPI_SUCCESS);
    advance(*access);
}

void start_put(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, const void* data, uint64_t bytes) {
    access.access = Access::Kind::put;
    access.memory = static_cast<std::byte*>(const_cast<void*>(data));
    begin(access, owner, exposure, offset, bytes);
}

void start_get(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, void* data, uint64_t bytes) {
    access.access = Access::Kind::get;
    access.memory = static_cast<std::byte*>(data);
    begin(access, owner, exposure, offset, bytes);
}

void start_update(Access& access, link::Peer& owner, const Exposure& exposure, uint64_t offset, uint8_t width, Update update,
                  uint64_t operand, uint64_t compare) {
    access.access = Access::Kind::update;
    access.width = width;
    access.update = update;
    access.operand = operand;
    access.compare = compare;
    begin(access, owner, exposure, offset, width);
}

}  // namespace starling::window
