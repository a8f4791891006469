// Collective operations over the node stage, for buffers of any datatype. Arguments as in collective.h, but
// ranks are participants of the exchange (see there for how an inter-communicator numbers them). Blocking;
// every participant calls the same one. Sizes must fit: can_serve() of select.h says which do.
#pragma once

#include "collective/blocks.h"
#include "collective/exchange.h"
#include "collective/node_exchange.h"
#include "collective/select.h"
#include "datatype/op.h"

namespace starling::collective::node {

using datatype::Op;

/// Participants [first, last).
struct Range {
    int first, last;
    bool has(int i) const { return first <= i && i < last; }
};

/// The two halves of a barrier: participant 0 waits for all; all wait for participant 0.
int arrive(Node& node, int n);
int release(Node& node, int me);
/// Instead of a broadcast by this root, or the release: the others get an error.
void give_up(Node& node, int root);
/// Whether so much goes through in one operation, so that others can count it without knowing how long it is.
bool fits_room(int participants, uint64_t bytes);
/// `reads`: this participant wants the data. `in_one`: others count the operation without knowing how long
/// it is.
int bcast(Node& node, int root, bool reads, void* buffer, int64_t count, const Datatype& type, bool in_one = false);
/// The operands of `range`, reduced in order, at the root. `input` is not MPI_IN_PLACE.
int reduce(Node& node, int root, Range range, const void* input, void* receive, int64_t count, const Datatype& type,
           const Op& op);
/// Everyone gets the reduction of the other side's operands; in an intra-communicator of all.
int allreduce(Node& node, const Exchange& exchange, const void* input, void* receive, int64_t count, const Datatype& type,
              const Op& op);
/// The reduction as with allreduce, of which everyone gets its share.
int reduce_scatter(Node& node, const Exchange& exchange, const void* input, void* receive, const Shares& shares,
                   const Datatype& type, const Op& op);
int gather(Node& node, int root, int me, Range range, const void* send, int64_t count, const Datatype& type,
           const Blocks& receive);
int scatter(Node& node, int root, int me, Range range, const Blocks& send, void* receive, int64_t count, const Datatype& type);
/// Everyone gets the blocks of the other side; in an intra-communicator of all. `send` may be MPI_IN_PLACE.
int allgather(Node& node, const Exchange& exchange, const void* send, int64_t count, const Datatype& type,
              const Blocks& receive);
/// Intra-communicators only.
int alltoall(Node& node, int me, int n, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
