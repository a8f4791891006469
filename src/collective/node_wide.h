// Operations of the node stage on more than a slot holds: piece by piece through the participants' wide rooms. Blocking.
// node_operations.h calls these where they serve; arguments as there.
#pragma once

#include "collective/node_operations.h"

namespace starling::collective::node {

/// Elements that are larger do not go through in pieces.
inline constexpr int64_t kMostElement = 1024;

/// Whose operands are added up with each other: everyone's, or those of either side of an inter-communicator.
struct Summands {
    Range group[2];
    int groups;
    int wanted;  ///< the group whose sum this participant gets
    explicit Summands(const Exchange& exchange);
    explicit Summands(int participants) : group{{0, participants}, {0, 0}}, groups(1), wanted(0) {}
};

/// What a participant gets of a sum: elements [first, last), maybe none, and where to.
struct Share {
    void* buffer;
    int64_t first, last;
};

/// Everyone gives each of the others its share of the operands, adds up its own, and gives the sums to all. `input` may be
/// the buffer of `mine`, if the result begins at or before the place of its operands.
int reduce_wide(Node& node, uint32_t kind, const Summands& summands, const void* input, const Share& mine, int64_t count,
                const Datatype& type, const Op& op);

int allgather_wide(Node& node, const void* send, int64_t count, const Datatype& type, const Blocks& receive);

int alltoall_wide(Node& node, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
