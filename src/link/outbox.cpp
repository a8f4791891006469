#include "link/outbox.h"

namespace starling::link {

namespace {

/// Memory stays for so long after its last use: pages cost 0.3 ms a megabyte to get anew.
constexpr uint64_t kRestNs = 500'000'000;

shm::Outbox* outbox = nullptr;
uint64_t next_rest = 0;

}  // namespace

void start_outbox() {
    const Process& me = self();
    outbox = new shm::Outbox(shm::Region(me.job->segment().region(me.rank)).outbox());
}

std::byte* reserve_in_outbox(Peer&, uint32_t bytes) {
    std::byte* place = outbox->reserve(bytes, shm::kOutboxBytes);
    if (!place) ++counters.outbox_full;
    return place;
}

shm::OutboxPlace commit_in_outbox(Peer& peer, const shm::ReadReceipt& receipt) {
    ++counters.payloads_outbox;
    return outbox->commit(receipt, &peer);
}

uint32_t inbox_limit() {
    if (outbox->reserve(shm::kOutboxPayload, shm::kOutboxBytes)) [[likely]] return shm::kOutboxPayload;
    ++counters.outbox_full;
    return shm::Cell::kPayload;
}

void forget_in_outbox(Peer& peer) { outbox->forget(&peer); }

void rest_outbox(uint64_t now) {
    if (now < next_rest) return;
    next_rest = now + kRestNs;
    outbox->rest();
}

}  // namespace starling::link
