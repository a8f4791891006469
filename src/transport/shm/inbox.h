// The inbox: the base path. A bounded queue in the receiver's region that every process may put packets
// into, at any time, without having met the receiver before. A process may be killed at any instruction of
// it without blocking the others: a cell says who claimed it, and the receiver takes back the cell of a dead one.
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

/// Who put a packet into an inbox; enough to answer. A process on this host, so its job's address needs no host.
struct Sender {
    job::JobId job;
    int32_t owner_pid, owner_fd;
    uint32_t rank;
    uint32_t reserved;
    job::JobAddress address() const { return {job, owner_pid, owner_fd, 0}; }
};

struct alignas(64) Cell {
    std::atomic<uint64_t> state;  ///< see inbox_protocol.h
    Sender sender;
    packet::Header header;
    static constexpr uint32_t kPayload = kCellBytes - 64;
    std::byte payload[kPayload];
};
static_assert(sizeof(Cell) == kCellBytes && offsetof(Cell, payload) == 64);

/// The shared part, in the receiver's region.
struct alignas(64) Inbox {
    std::atomic<uint64_t> tail;              ///< next ticket to claim; only a hint, cells decide
    alignas(64) std::atomic<uint64_t> head;  ///< packets taken, by the receiver; cells don't depend on it
    alignas(64) Cell cells[kInboxCells];
};

/// Claims a cell; nullptr if the inbox is full. Fill it, then publish(). `pid` is the caller's.
Cell* claim(Inbox& inbox, uint32_t pid);
void publish(Cell& cell);
/// How it is known that the packet in a claimed cell has been read: the count is one for all cells, so one look at it tells
/// of many packets.
inline ReadReceipt receipt(const Inbox& inbox, const Cell& cell) {
    const uint64_t lap = cell_state::lap_of(cell.state.load(std::memory_order_relaxed));
    return {{&inbox.head}, lap * kInboxCells + static_cast<uint64_t>(&cell - inbox.cells) + 1};
}

/// The receiver's end. One per process; not thread-safe.
using InboxReader = BasicInboxReader<Inbox>;

}  // namespace starling::shm
