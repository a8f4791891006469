// Neighborhood collectives over the shared-memory stage: every process writes all its blocks into one buffer, and reads its own blocks from
// its neighbors' buffers. The buffer is the participant's slot or, for more data, its pipeline buffer. A process with more data than that
// marks its slot accordingly and sends messages.
#pragma once

#include <vector>

#include "collective/core/blocks.h"
#include "collective/shm/driver.h"
#include "comm/neighborhood.h"

namespace starling::collective::node {

/// The arguments of a neighborhood collective. References must outlive the operation.
struct NeighborTraffic {
    const comm::Neighborhood& neighborhood;
    Blocks send;
    bool same_for_all;  ///< whether all neighbors get the same block, the first of `send`
    Blocks receive;

    int block_to(const comm::NeighborEdge& edge) const { return same_for_all ? 0 : edge.block; }
};

/// The part of the operation that must use messages.
struct ByMessages {
    bool mine = false;  ///< whether this process sends its blocks by messages
    /// One flag per source, in order: whether its block arrives by a message; empty: all blocks are in shared memory.
    std::vector<bool> from;
    bool any() const { return mine || !from.empty(); }
};

/// `places`: index at which each source stores this process's block (NodeOwner::places). On completion, `rest` describes the part that must
/// still use messages.
Task neighbors(const NodeDriver& on, const NeighborTraffic& traffic, const std::vector<int>& places, ByMessages& rest);

}  // namespace starling::collective::node
