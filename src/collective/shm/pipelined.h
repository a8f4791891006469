// Operations of the shared-memory stage on more data than a slot holds: piece by piece through the participants' pipeline buffers. The
// functions of operations.h call them for such data, with the same arguments.
#pragma once

#include "collective/shm/operations.h"

namespace starling::collective::node {

/// Maximum size in bytes of an element that can be reduced in pieces.
inline constexpr int64_t kMostElement = 1024;

/// The groups of participants whose operands are reduced together: all, or each side of an inter-communicator.
struct Operands {
    ParticipantRange group[2];
    int groups;
    int wanted;  ///< index of the group whose result this participant gets
    explicit Operands(const Exchange& exchange);
    /// Returns the participants whose operands, or blocks, this participant receives.
    const ParticipantRange& theirs() const { return group[wanted]; }
    explicit Operands(int participants) : group{{0, participants}, {0, 0}}, groups(1), wanted(0) {}
};

/// The part of a result that a participant gets: elements [first, last), possibly none, and its buffer.
struct ReductionShare {
    void* buffer;
    int64_t first, last;
};

/// Reduces piece by piece. Every participant passes each other one its share of the operands, reduces its own share and passes the result
/// to all. `input` may be the buffer of `mine`, if the result begins at or before its operands.
Task reduce_wide(const NodeDriver& on, uint32_t kind, const Operands& summands, const void* input, const ReductionShare& mine,
                 int64_t count, const Datatype& type, const Op& op);

/// Reduces piece by piece, for participants of one group: each reads the others' operands and reduces all of them. For two participants
/// that is as much work as to divide the reduction, and it takes one meeting per piece instead of two.
Task fold_wide(const NodeDriver& on, uint32_t kind, const void* input, void* receive, int64_t count, const Datatype& type,
               const Op& op);

/// The blocks of an all-gather: this process's own, and those that it receives, which all have one size.
struct PipelinedGather {
    const Exchange& exchange;
    const Blocks receive;
    const bool in_place;
    const Datatype& type;
    const int64_t count;
    const void* buffer;
    const uint64_t mine, theirs;  ///< bytes per block: this process's own, and each received one
    const std::byte* own_block;   ///< own block, if its memory is contiguous in packed order; else null
    PipelinedGather(const Exchange& exchange, const void* send, int64_t count, const Datatype& type, const Blocks& receive);

    uint64_t longest() const { return mine > theirs ? mine : theirs; }
    uint64_t bytes(int participant) const { return is_mine(participant) ? mine : theirs; }
    /// Writes a range of this process's block into shared memory; read() copies that range of all blocks from there.
    void write(EngineSync& sync, uint64_t from, uint64_t bytes, std::byte* room) const {
        datatype::pack(sync.copies, type, count, buffer, from, room, bytes, sync.into_room);
    }
    /// Copies a range of this process's block to its place among the received ones. Returns whether it could: read() need not do it then.
    bool copy_own(uint64_t from, uint64_t bytes) const {
        if (!own_block) return in_place;
        if (!in_place && !exchange.inter()) {
            const int rank = exchange.rank;
            datatype::unpack(receive.type(rank), receive.count(rank), receive.at(rank), from, own_block + from, bytes);
        }
        return true;
    }
    template <class Room>
    void read(Room room, uint64_t from, uint64_t bytes, bool has_own = false) const {
        const int first = exchange.inter() ? exchange.remote_base : 0;
        const int n = exchange.inter() ? exchange.remote_size : exchange.size;
        for (int rank = 0; rank < n; ++rank) {
            const bool is_mine = first + rank == exchange.rank;
            if (is_mine && (in_place || has_own)) continue;
            const std::byte* block = is_mine && own_block ? own_block + from : room(first + rank);
            datatype::unpack(receive.type(rank), receive.count(rank), receive.at(rank), from, block, bytes);
        }
    }

  private:
    bool is_mine(int participant) const {
        return participant >= exchange.local_base && participant < exchange.local_base + exchange.local_size;
    }
};
Task allgather_wide(const NodeDriver& on, const PipelinedGather& gathering);

Task alltoall_wide(const NodeDriver& on, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
