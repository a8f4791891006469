#include "transport/shm/inbox.h"

#include <cerrno>
#include <csignal>

namespace starling::shm {

namespace {

enum Phase : uint64_t { kFree = 0, kClaimed = 1, kFull = 2 };

constexpr uint64_t make_state(uint64_t lap, Phase phase, uint32_t pid) {
    return lap << 24 | static_cast<uint64_t>(phase) << 22 | pid;
}
constexpr uint64_t lap_of(uint64_t state) { return state >> 24; }
constexpr Phase phase_of(uint64_t state) { return static_cast<Phase>(state >> 22 & 3); }
constexpr uint32_t pid_of(uint64_t state) { return static_cast<uint32_t>(state & ((1u << 22) - 1)); }

}  // namespace

Cell* claim(Inbox& inbox, uint32_t pid) {
    uint64_t ticket = inbox.tail.load(std::memory_order_acquire);
    for (;;) {
        Cell& cell = inbox.cells[ticket % kInboxCells];
        const uint64_t lap = ticket / kInboxCells;
        uint64_t seen = cell.state.load(std::memory_order_acquire);
        if (lap_of(seen) < lap) return nullptr;  // still holds a packet of the lap before: full
        if (seen == make_state(lap, kFree, 0) &&
            cell.state.compare_exchange_strong(seen, make_state(lap, kClaimed, pid), std::memory_order_acq_rel)) {
            // The tail may have been moved on already by one who saw the claim; either way it is past us.
            inbox.tail.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel);
            return &cell;
        }
        // Someone else has this ticket: help the tail on, so that a claimant killed here blocks no one.
        if (inbox.tail.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel)) ++ticket;
    }
}

void publish(Cell& cell) {
    const uint64_t claimed = cell.state.load(std::memory_order_relaxed);
    cell.state.store(make_state(lap_of(claimed), kFull, pid_of(claimed)), std::memory_order_release);
}

Cell* InboxReader::front() {
    Cell& cell = inbox_->cells[head_ % kInboxCells];
    const uint64_t seen = cell.state.load(std::memory_order_acquire);
    return phase_of(seen) == kFull && lap_of(seen) == head_ / kInboxCells ? &cell : nullptr;
}

void InboxReader::pop() {
    Cell& cell = inbox_->cells[head_ % kInboxCells];
    cell.state.store(make_state(head_ / kInboxCells + 1, kFree, 0), std::memory_order_release);
    ++head_;
}

bool InboxReader::skip_dead() {
    Cell& cell = inbox_->cells[head_ % kInboxCells];
    uint64_t seen = cell.state.load(std::memory_order_acquire);
    if (phase_of(seen) != kClaimed || lap_of(seen) != head_ / kInboxCells) return false;
    if (kill(static_cast<pid_t>(pid_of(seen)), 0) == 0 || errno != ESRCH) return false;
    // The claimant may have published just before it died.
    if (!cell.state.compare_exchange_strong(seen, make_state(lap_of(seen) + 1, kFree, 0))) return false;
    ++head_;
    return true;
}

}  // namespace starling::shm
