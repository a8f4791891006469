// The inbox: the base path within a host. It is a bounded queue in the receiver's region into which any process may put packets at any
// time, without prior setup. A process that is killed at any instruction does not block the others: a cell holds its claimant's pid, and
// the receiver skips the cell of a dead one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "job/job_segment.h"
#include "transport/packet.h"
#include "transport/shm/inbox_protocol.h"
#include "transport/shm/outbox.h"

namespace starling::shm {

inline constexpr uint32_t kInboxCells = 64;
inline constexpr uint32_t kCellBytes = 1024;

/// The sender of a packet in an inbox, with all data that a reply requires. It is on this host, so its job's address needs no host.
struct CellSender {
    job::JobId job;
    int32_t owner_pid, owner_fd;
    uint32_t rank;
    uint32_t reserved;
    job::JobAddress address() const { return {job, owner_pid, owner_fd, 0}; }
};

struct alignas(64) Cell {
    std::atomic<uint64_t> state;  ///< lap, phase and claimant's pid; see inbox_protocol.h
    CellSender sender;
    packet::Header header;
    static constexpr uint32_t kPayload = kCellBytes - 64;
    std::byte payload[kPayload];
};
static_assert(sizeof(Cell) == kCellBytes && offsetof(Cell, payload) == 64);

/// The shared part of an inbox, in the receiver's region.
struct alignas(64) Inbox {
    std::atomic<uint64_t> tail;  ///< next ticket to claim; only a hint, since the cells' states decide
    /// Number of packets taken by the receiver, from which senders learn what was read.
    alignas(64) std::atomic<uint64_t> head;
    alignas(64) Cell cells[kInboxCells];
};

/// Claims a cell; nullptr if the inbox is full. Fill the cell, then publish() it. `pid` is the caller's.
Cell* claim(Inbox& inbox, uint32_t pid);
void publish(Cell& cell);
/// Returns the receipt by which a sender learns that the packet in a claimed cell has been read. All cells share one count, so reading it
/// once tests many packets.
inline ReadReceipt receipt(const Inbox& inbox, const Cell& cell) {
    const uint64_t lap = cell_state::lap_of(cell.state.load(std::memory_order_relaxed));
    return {{&inbox.head}, lap * kInboxCells + static_cast<uint64_t>(&cell - inbox.cells) + 1};
}

/// The receiver's end of an inbox. One per process; not thread-safe.
using InboxReader = BasicInboxReader<Inbox>;

}  // namespace starling::shm
