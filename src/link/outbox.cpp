#include "link/outbox.h"

#include <vector>

#include "base/state.h"

namespace starling::link {

namespace {

/// Memory stays for so long after its last use: pages cost 0.3 ms a megabyte to get anew.
constexpr uint64_t kRestNs = 500'000'000;

STARLING_STATE shm::Outbox* outbox = nullptr;
STARLING_STATE uint64_t next_rest = 0;

/// All who were lent something; in `left`, those who get nothing more.
STARLING_STATE std::vector<Borrowers*>* borrowers = nullptr;
STARLING_STATE std::vector<std::unique_ptr<Borrowers>>* left = nullptr;

/// Learns what has been read by those who can't tell.
void look_at_borrowers() {
    if (!borrowers) return;
    for (Borrowers* each : *borrowers) each->look();
    std::erase_if(*left, [](const std::unique_ptr<Borrowers>& each) {
        if (outbox->held_by(each.get())) return false;
        outbox->forget(each.get());
        std::erase(*borrowers, each.get());
        return true;
    });
}

std::byte* reserve(uint32_t bytes) {
    std::byte* place = outbox->reserve(bytes, shm::kOutboxBytes);
    if (!place && borrowers) [[unlikely]] {
        look_at_borrowers();
        place = outbox->reserve(bytes, shm::kOutboxBytes);
    }
    if (!place) ++counters.outbox_full;
    return place;
}

}  // namespace

void start_outbox() {
    const Process& me = self();
    outbox = new shm::Outbox(shm::Region(me.job->segment().region(me.rank)).outbox());
}

std::byte* reserve_in_outbox(Peer&, uint32_t bytes) { return reserve(bytes); }

shm::OutboxPlace commit_in_outbox(Peer& peer, const shm::ReadReceipt& receipt) {
    ++counters.payloads_outbox;
    return outbox->commit(receipt, &peer);
}

uint32_t inbox_limit() {
    if (outbox->reserve(shm::kOutboxPayload, shm::kOutboxBytes)) [[likely]]
        return shm::kOutboxPayload;
    ++counters.outbox_full;
    return shm::Cell::kPayload;
}

void forget_in_outbox(Peer& peer) { outbox->forget(&peer); }

std::byte* lend_from_outbox(Borrowers& to, uint32_t bytes, uint64_t until, uint32_t& place) {
    if (!to.known_) {
        if (!borrowers) borrowers = new std::vector<Borrowers*>, left = new std::vector<std::unique_ptr<Borrowers>>;
        borrowers->push_back(&to);
        to.known_ = true;
    }
    std::byte* room = reserve(bytes);
    if (room) place = outbox->commit({{&to.back_}, until}, &to).offset;
    return room;
}

void end_loans(std::unique_ptr<Borrowers> from) {
    if (!borrowers) return;
    left->push_back(std::move(from));
    look_at_borrowers();
}

void rest_outbox(uint64_t now) {
    if (now < next_rest) return;
    next_rest = now + kRestNs;
    look_at_borrowers();
    outbox->rest();
}

}  // namespace starling::link
