#include "transport/shm/shared_memory.h"

#include <unistd.h>

#include <cstring>

#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/live.h"
#include "base/process.h"
#include "mpi.h"

namespace starling::shm {

namespace {

constexpr int kBatch = 16;  ///< most packets delivered from the inbox before other sources are polled
constexpr uint64_t kAskAgainNs = 1'000'000;

uint32_t slot_limit() {
    const auto limit = static_cast<uint32_t>(live(config().max_direct));
    return limit < kRingSlots ? limit : kRingSlots;
}

uint32_t slot_in(const std::byte* offer) {
    uint32_t slot;
    std::memcpy(&slot, offer, sizeof slot);
    return slot;
}

}  // namespace

// Functions of the paths.

ShmPath::ShmPath(SharedMemory& by, const transport::ProcessAddress& to, void* user)
    : transport::Path(by, to, user), region(by.reaches(to) ? to.segment->region(to.rank) : nullptr) {}

uint32_t ShmPath::payload_limit() const {
    if (has_ring()) return kRingPayload;
    return memory().lending_.has_room() ? kRingPayload : Cell::kPayload;
}

bool ShmPath::reserve(uint32_t bytes, transport::PacketSlot& slot) {
    if (closed_ || bytes > kTraits.payload) return false;
    slot.path = this;
    if (has_ring()) return reserve_in_ring(bytes, slot);
    std::byte* outside = nullptr;
    // Fail if the outbox has no room. A payload is this long here only if the ring was closed after the caller had read payload_limit().
    if (bytes > Cell::kPayload && !(outside = memory().lending_.reserve(bytes))) return false;
    Cell* const cell = claim(region.inbox(), memory().pid_);
    if (!cell) {
        // Wake the receiver: the inbox may be full of packets for which it was not woken.
        job::ring(region.doorbell());
        return false;
    }
    const job::JobAddress& us = memory().address_;
    cell->sender = {us.id, us.owner_pid, us.owner_fd, memory().self_.rank, 0};
    slot.place = cell;
    slot.rotates = outside != nullptr;
    slot.spare = outside ? Outbox::spare(bytes) : 0;
    slot.header = &cell->header;
    slot.payload = outside ? outside : cell->payload;
    return true;
}

// Reserves space for a payload that is too long for a ring's line, or found no room in the bulk area.
bool ShmPath::reserve_long(uint32_t bytes, transport::PacketSlot& slot) {
    if (bytes <= kInlineBytes || !out.has_line()) return false;
    slot.payload = memory().lending_.reserve(bytes);
    slot.rotates = slot.payload != nullptr;
    slot.spare = slot.rotates ? Outbox::spare(bytes) : 0;
    // Receivers that don't poll may hold the whole outbox, but only this receiver uses the ring's bulk area.
    if (slot.rotates)
        slot.path = this;
    else if (bytes <= kRingPayload)
        slot.payload = out.reserve_bulk(bytes);
    slot.header = &out.header();
    return slot.payload != nullptr;
}

void ShmPath::commit(transport::PacketSlot& slot, uint32_t bytes) {
    auto* const cell = static_cast<Cell*>(slot.place);
    if (!cell && !slot.rotates) return commit_in_ring(bytes, slot.quiet);
    if (!cell) {
        out.commit(bytes, memory().lending_.commit(out.receipt(), this, slot.payload));
        ++counters.messages_ring;
        counters.bytes_ring += bytes;
    } else {
        if (slot.rotates) {
            const OutboxPlace place = memory().lending_.commit(receipt(region.inbox(), *cell), this, slot.payload);
            std::memcpy(cell->payload, &place, sizeof place);
        }
        slot.header->where = slot.rotates ? packet::PayloadLocation::outbox : packet::PayloadLocation::here;
        slot.header->bytes = bytes;
        publish(*cell);
        ++counters.messages_inbox;
        counters.bytes_inbox += bytes;
    }
    if (!slot.quiet) job::ring(region.doorbell());
}

void ShmPath::close() {
    closed_ = true;
    memory().lending_.forget(this);
    out = {};
    close_pending = false;
}

bool ShmPath::try_close() {
    if (!out.reserve(0)) return false;
    out.header().kind = packet::PacketKind::close;
    out.commit(0);
    out = {};
    close_pending = false;
    return true;
}

// Handles close, the last packet on a ring. It is not popped, since the ring ends there.
bool ShmPath::consume_close() {
    // Leave the packet: the close may have overtaken the accept that makes this path ready.
    if (!ready_) return false;
    memory().sink_.connection(user, transport::ConnectionEvent::ended);
    return true;
}

// Functions of the transport.

SharedMemory::SharedMemory(const transport::ProcessAddress& self, transport::Sink& sink)
    : Transport(kTraits),
      self_(self),
      sink_(sink),
      pid_(static_cast<uint32_t>(knows_pids() ? getpid() : self.segment->cell(self.rank).pid.load())),
      address_(self.segment->address()),
      region_(self.segment->region(self.rank)),
      inbox_(region_.inbox()),
      lending_(region_.outbox()) {}

int SharedMemory::attach(const transport::ProcessAddress& to, void* user, transport::Path*& out) {
    if (!reaches(to)) return fail(MPI_ERR_INTERN, "rank %u is on another host", to.rank);
    auto* const path = new ShmPath(*this, to, user);
    path->owned_ = true;
    out = path;
    return MPI_SUCCESS;
}

void SharedMemory::detach(transport::Path& path) {
    auto& mine = static_cast<ShmPath&>(path);
    if (mine.in) release_slot(mine);
    mine.close();
    if (last_sender_ == &mine) last_sender_ = nullptr;
    if (mine.owned_) delete &mine;
}

void SharedMemory::forget(job::JobId job) {
    if (last_sender_ && last_sender_->to.job() == job) last_sender_ = nullptr;
}

/// Returns the sender's path. Null if the sender's job has ended: the sender cannot be answered, so its packet is dropped. Null, with
/// `later` set, if the job cannot be mapped now.
ShmPath* SharedMemory::sender_of(const Cell& cell, bool& later) {
    const CellSender& sender = cell.sender;
    if (last_sender_ && last_sender_->to.rank == sender.rank && last_sender_->to.job() == sender.job) return last_sender_;
    if (retry_at_ != 0 && now_ns() < retry_at_) {
        later = true;
        return nullptr;
    }
    transport::Path* const met = sink_.on_unknown_sender({sender.address(), sender.rank}, later);
    retry_at_ = later ? now_ns() + kAskAgainNs : 0;
    if (!met || &met->by != this) return nullptr;
    return last_sender_ = static_cast<ShmPath*>(met);
}

bool SharedMemory::poll(PollUrgency) {
    bool any = false;
    for (int i = 0; i < kBatch; ++i) {
        Cell* const cell = inbox_.front();
        if (!cell) break;
        const bool outside = cell->header.where == packet::PayloadLocation::outbox;
        bool later = false;
        ShmPath* path = cell->header.bytes <= (outside ? kOutboxPayload : Cell::kPayload) ? sender_of(*cell, later) : nullptr;
        if (later) [[unlikely]]
            break;
        if (path && !path->closed_)
            sink_.deliver(
                path->user,
                {cell->header, outside ? payload_in(path->region.outbox(), cell->payload, cell->header.bytes) : cell->payload});
        inbox_.pop();
        any = true;
    }
    return any;
}

// Functions for rings.

// Returns whether a ring may be opened. A closing ring needs its slot until the peer has answered, which may take long; but it no longer
// counts against the limit.
bool SharedMemory::has_place() {
    uint32_t open = 0;
    for (const ShmPath* user : users_) open += user && !user->leaving_;
    return open < slot_limit() && free_slot() >= 0;
}

int SharedMemory::free_slot() {
    for (uint32_t i = 0; i < kRingSlots; ++i)
        if (!(taken_ >> i & 1)) return static_cast<int>(i);
    for (uint32_t i = 0; i < kRingSlots; ++i) {
        if (last_writers_[i] == 0 || !neighbour_ended(last_writers_[i])) continue;
        last_writers_[i] = 0;
        taken_ &= ~(uint64_t{1} << i);
        return static_cast<int>(i);
    }
    return -1;
}

bool SharedMemory::earned(uint32_t packets, uint64_t) const {
    return packets >= static_cast<uint32_t>(live(config().direct_threshold));
}

void SharedMemory::acquire_slot(transport::Path& path) {
    auto& mine = static_cast<ShmPath&>(path);
    mine.in_slot_ = static_cast<uint32_t>(free_slot());
    mine.ready_ = mine.leaving_ = false;
    taken_ |= uint64_t{1} << mine.in_slot_;
    users_[mine.in_slot_] = &mine;
    mine.in.reset(region_.ring(mine.in_slot_), mine.region.outbox());
}

uint32_t SharedMemory::describe(transport::Path& path, packet::PacketKind, std::byte* offer) {
    const uint32_t slot = static_cast<ShmPath&>(path).in_slot_;
    std::memcpy(offer, &slot, sizeof slot);
    return sizeof slot;
}

bool SharedMemory::is_offer(const std::byte* offer) const { return slot_in(offer) < kRingSlots; }

void SharedMemory::use(transport::Path& path, packet::PacketKind, const std::byte* offer) {
    auto& mine = static_cast<ShmPath&>(path);
    mine.out = RingWriter(mine.region.ring(slot_in(offer)));
    mine.ready_ = true;
    sink_.connection(mine.user, transport::ConnectionEvent::ready);
}

// Sends the close packet on the ring. If there is no room for it now, the path's owner tries again: try_close().
void SharedMemory::finish(transport::Path& path) {
    auto& mine = static_cast<ShmPath&>(path);
    mine.close_pending = mine.leaving_ = true;
}

void SharedMemory::release_slot(transport::Path& path) {
    auto& mine = static_cast<ShmPath&>(path);
    mine.in.retire();
    mine.in = {};
    users_[mine.in_slot_] = nullptr;
    const pid_t pid = mine.closed_ ? mine.to.segment->cell(mine.to.rank).pid.load() : 0;
    if (pid > 0 && !neighbour_ended(pid))
        last_writers_[mine.in_slot_] = pid;
    else
        taken_ &= ~(uint64_t{1} << mine.in_slot_);
}

void SharedMemory::each_user(void (*visit)(void* user, void* argument), void* argument) {
    for (ShmPath* const user : users_)
        if (user) visit(user->user, argument);
}

}  // namespace starling::shm
