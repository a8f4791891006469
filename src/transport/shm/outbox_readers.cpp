#include "transport/shm/outbox_readers.h"

#include "base/counters.h"
#include "transport/shm/ring.h"

namespace starling::shm {

namespace {
/// Time (ns) for which memory is kept after its last use: allocating pages again costs 0.3 ms per megabyte.
constexpr uint64_t kRestNs = 500'000'000;
}  // namespace

/// Checks how far the Borrowers have read, since they do not report it.
void Lending::update_borrowers() {
    for (Borrowers* each : borrowers_) each->update_back();
    std::erase_if(left_, [this](const std::unique_ptr<Borrowers>& each) {
        if (outbox_.held_by(each.get())) return false;
        outbox_.forget(each.get());
        std::erase(borrowers_, each.get());
        return true;
    });
}

std::byte* Lending::reserve(uint32_t bytes) {
    std::byte* place = outbox_.reserve(bytes, kOutboxBytes);
    if (!place && !borrowers_.empty()) [[unlikely]] {
        update_borrowers();
        place = outbox_.reserve(bytes, kOutboxBytes);
    }
    if (!place) ++counters.outbox_full;
    return place;
}

OutboxPlace Lending::commit(const ReadReceipt& receipt, const void* reader, const std::byte* payload) {
    ++counters.payloads_outbox;
    return outbox_.commit(receipt, reader, payload);
}

bool Lending::has_room() {
    if (outbox_.reserve(kRingPayload, kOutboxBytes)) [[likely]]
        return true;
    ++counters.outbox_full;
    return false;
}

std::byte* Lending::allocate(Borrowers& to, uint32_t bytes, uint64_t until, uint32_t window, uint32_t& place) {
    if (!to.known_) borrowers_.push_back(&to);
    to.known_ = true;
    std::byte* room = window < kOutboxBytes ? outbox_.reserve(bytes, window) : nullptr;
    if (!room && window < kOutboxBytes) {
        update_borrowers();
        room = outbox_.reserve(bytes, window);
    }
    if (!room) room = reserve(bytes);
    if (room) place = outbox_.commit({{&to.back_}, until}, &to, room).offset;
    return room;
}

void Lending::end_loans(std::unique_ptr<Borrowers> from) {
    if (!from || !from->known_) return;
    left_.push_back(std::move(from));
    update_borrowers();
}

void Lending::release_idle(uint64_t now) {
    if (now < next_rest_) return;
    next_rest_ = now + kRestNs;
    update_borrowers();
    outbox_.release_idle();
}

}  // namespace starling::shm
