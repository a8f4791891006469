// The protocol of an inbox: which process owns a cell when. The functions are templates over the shared memory's type, so that tests can
// substitute their own atomics and try every order of steps. An Inbox has a `tail`, a `head` and an array of `cells`, each with a `state`.
// `head` counts the packets that were taken; senders read it to learn whether their packet was.
//
// `state` = lap (40 bits) | phase (2 bits) | claimant's pid (22 bits). All zero is "free in lap 0", so fresh memory is an empty inbox.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <iterator>

#include "base/process.h"

namespace starling::shm {

namespace cell_state {
enum CellState : uint64_t { kFree = 0, kClaimed = 1, kFull = 2 };

constexpr uint64_t make(uint64_t lap, CellState phase, uint32_t pid) {
    return lap << 24 | static_cast<uint64_t>(phase) << 22 | pid;
}
constexpr uint64_t lap_of(uint64_t state) { return state >> 24; }
constexpr CellState phase_of(uint64_t state) { return static_cast<CellState>(state >> 22 & 3); }
constexpr uint32_t pid_of(uint64_t state) { return static_cast<uint32_t>(state & ((1u << 22) - 1)); }
}  // namespace cell_state

/// Claims a cell for the process `pid`; nullptr if the inbox is full.
template <class Inbox>
auto* claim_cell(Inbox& inbox, uint32_t pid) {
    using namespace cell_state;
    const uint64_t count = std::size(inbox.cells);
    uint64_t ticket = inbox.tail.load(std::memory_order_acquire);
    for (;;) {
        auto& cell = inbox.cells[ticket % count];
        const uint64_t lap = ticket / count;
        uint64_t seen = cell.state.load(std::memory_order_acquire);
        // The cell still holds a packet of the previous lap, so the inbox is full.
        if (lap_of(seen) < lap) return static_cast<decltype(&cell)>(nullptr);
        if (seen == make(lap, kFree, 0) &&
            cell.state.compare_exchange_strong(seen, make(lap, kClaimed, pid), std::memory_order_acq_rel)) {
            // Advance the tail past our ticket. If this fails, another claimant that saw our claim has already advanced it.
            inbox.tail.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel);
            return &cell;
        }
        // Another process has claimed this ticket. Advance the tail for it, so that a claimant killed at this point does not block the
        // others.
        if (inbox.tail.compare_exchange_strong(ticket, ticket + 1, std::memory_order_acq_rel)) ++ticket;
    }
}

/// Publishes the packet in a claimed cell to the receiver.
template <class Cell>
void publish_cell(Cell& cell) {
    using namespace cell_state;
    const uint64_t claimed = cell.state.load(std::memory_order_relaxed);
    cell.state.store(make(lap_of(claimed), kFull, pid_of(claimed)), std::memory_order_release);
}

/// The receiver's end of an inbox. One per process; not thread-safe.
template <class Inbox>
class BasicInboxReader {
  public:
    /// Creates a reader that continues after `head` packets, which were taken before.
    explicit BasicInboxReader(Inbox& inbox, uint64_t head = 0) : inbox_(&inbox), head_(head) {}

    /// Returns the oldest packet, or nullptr if there is none or its sender is still writing it.
    auto* front() {
        using namespace cell_state;
        auto& cell = head_cell();
        const uint64_t seen = cell.state.load(std::memory_order_acquire);
        return phase_of(seen) == kFull && lap_of(seen) == lap() ? &cell : nullptr;
    }

    /// Frees the cell of front().
    void pop() {
        head_cell().state.store(cell_state::make(lap() + 1, cell_state::kFree, 0), std::memory_order_release);
        publish_head();
    }

    /// Skips the oldest cell if its claimant has died before publishing it; returns whether it did. For slow paths only, since it asks the
    /// kernel whether the claimant lives.
    bool skip_dead(bool (*gone)(pid_t) = neighbour_ended) {
        using namespace cell_state;
        auto& cell = head_cell();
        uint64_t seen = cell.state.load(std::memory_order_acquire);
        if (phase_of(seen) != kClaimed || lap_of(seen) != lap()) return false;
        if (pid_of(seen) == 0 || !gone(static_cast<pid_t>(pid_of(seen)))) return false;  // 0: the claimant's pid is unknown
        // Compare and swap, since the claimant may have published the packet just before it died.
        if (!cell.state.compare_exchange_strong(seen, make(lap() + 1, kFree, 0), std::memory_order_acq_rel)) return false;
        publish_head();
        return true;
    }

  private:
    auto& head_cell() { return inbox_->cells[head_ % std::size(inbox_->cells)]; }
    void publish_head() { inbox_->head.store(++head_, std::memory_order_release); }
    uint64_t lap() const { return head_ / std::size(inbox_->cells); }

    Inbox* inbox_;
    uint64_t head_;
};

}  // namespace starling::shm
