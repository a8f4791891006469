// Operations of the node stage on more than a slot holds: piece by piece through the participants' wide rooms. Blocking;
// intra-communicators only. node_operations.h calls these where they serve; arguments as there.
#pragma once

#include "collective/node_operations.h"

namespace starling::collective::node {

/// Elements that are larger do not go through in pieces.
inline constexpr int64_t kMostElement = 1024;

/// Everyone gives each of the others its share of the operands, reduces its own, and gives the result to all: or to
/// `root` alone, if it is not negative. `receive` counts where the result is wanted. `input` may be `receive`.
int reduce_wide(Node& node, Kind kind, int root, const void* input, void* receive, int64_t count, const Datatype& type,
                const Op& op);

int allgather_wide(Node& node, const void* send, int64_t count, const Datatype& type, const Blocks& receive);

int alltoall_wide(Node& node, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
