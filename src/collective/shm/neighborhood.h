// Neighborhood collectives over the node stage: everyone puts all its blocks into one room, and reads its own in those of its
// neighbours. The room is a participant's slot or, for more, its wide room; who has more than that holds says so there, and sends
// messages.
#pragma once

#include <vector>

#include "collective/core/blocks.h"
#include "collective/shm/driver.h"
#include "comm/neighborhood.h"

namespace starling::collective::node {

/// What a neighborhood collective moves. A view; what it refers to outlives the operation.
struct NeighborTraffic {
    const comm::Neighborhood& near;
    Blocks send;
    bool same_for_all;  ///< the first block of `send` goes to all
    Blocks receive;

    int block_to(const comm::NeighborEdge& edge) const { return same_for_all ? 0 : edge.block; }
};

/// What has to go by messages.
struct ByMessages {
    bool mine = false;       ///< what I send
    std::vector<bool> from;  ///< by place among those that I receive from; empty: nothing
    bool any() const { return mine || !from.empty(); }
};

/// `places`: as NodeOwner has them. What is left to messages when the operation is over it finds in `rest`.
Task neighbors(const NodeDriver& on, const NeighborTraffic& traffic, const std::vector<int>& places, ByMessages& rest);

}  // namespace starling::collective::node
