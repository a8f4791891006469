// Operations of the node stage on more than a slot holds: piece by piece through the participants' wide
// rooms. operations.h calls these where they serve; arguments as there.
#pragma once

#include "collective/shm/operations.h"

namespace starling::collective::node {

/// Elements that are larger do not go through in pieces.
inline constexpr int64_t kMostElement = 1024;

/// Whose operands are added up with each other: everyone's, or those of either side of an
/// inter-communicator.
struct Operands {
    Range group[2];
    int groups;
    int wanted;  ///< the group whose sum this participant gets
    explicit Operands(const Exchange& exchange);
    /// Those whose operands, or blocks, this participant gets.
    const Range& theirs() const { return group[wanted]; }
    explicit Operands(int participants) : group{{0, participants}, {0, 0}}, groups(1), wanted(0) {}
};

/// What a participant gets of a sum: elements [first, last), maybe none, and where to.
struct Share {
    void* buffer;
    int64_t first, last;
};

/// Everyone gives each of the others its share of the operands, adds up its own, and gives the sums to all.
/// `input` may be the buffer of `mine`, if the result begins at or before the place of its operands.
Task reduce_wide(const NodeDriver& on, uint32_t kind, const Operands& summands, const void* input, const Share& mine,
                 int64_t count, const Datatype& type, const Op& op);

/// What an all-gather moves: my block, and those that I get, of one size each.
struct Gathering {
    const Exchange& exchange;
    const Blocks receive;
    const bool in_place;
    const Datatype& type;
    const int64_t count;
    const void* buffer;
    const uint64_t mine, theirs;  ///< bytes of a block
    const std::byte* own_block;   ///< mine, if it lies in memory as it would in a room; else null
    Gathering(const Exchange& exchange, const void* send, int64_t count, const Datatype& type, const Blocks& receive);

    uint64_t longest() const { return mine > theirs ? mine : theirs; }
    uint64_t bytes(int participant) const { return is_mine(participant) ? mine : theirs; }
    /// A range of my block into shared memory, and the same range of everyone's from there.
    void write(EngineSync& sync, uint64_t from, uint64_t bytes, std::byte* room) const {
        datatype::pack(sync.copies, type, count, buffer, from, room, bytes, sync.into_room);
    }
    template <class Room>
    void read(Room room, uint64_t from, uint64_t bytes) const {
        const int first = exchange.inter() ? exchange.remote_base : 0;
        const int n = exchange.inter() ? exchange.remote_size : exchange.size;
        for (int rank = 0; rank < n; ++rank) {
            const bool is_mine = first + rank == exchange.rank;
            if (is_mine && in_place) continue;
            const std::byte* block = is_mine && own_block ? own_block + from : room(first + rank);
            datatype::unpack(receive.type(rank), receive.count(rank), receive.at(rank), from, block, bytes);
        }
    }

  private:
    bool is_mine(int participant) const {
        return participant >= exchange.local_base && participant < exchange.local_base + exchange.local_size;
    }
};
Task allgather_wide(const NodeDriver& on, const Gathering& gathering);

Task alltoall_wide(const NodeDriver& on, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
