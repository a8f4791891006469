// Collective operations over the node stage, for buffers of any datatype. Arguments as in collective.h, but
// ranks are participants of the exchange (see there for how an inter-communicator numbers them).
// Every participant calls the same one. Sizes must fit: can_serve() of select.h says which do.
#pragma once

#include "collective/core/blocks.h"
#include "collective/core/exchange.h"
#include "collective/select.h"
#include "collective/shm/driver.h"
#include "datatype/op.h"

namespace starling::collective::node {

using datatype::Op;

/// Participants [first, last).
struct Range {
    int first, last;
    bool has(int i) const { return first <= i && i < last; }
};

Task barrier(const NodeDriver& on);
/// The two halves of a barrier: participant 0 waits for all; all wait for participant 0.
Task arrive(const NodeDriver& on);
Task release(const NodeDriver& on);
/// Instead of a broadcast by this root, or the release: the others get an error.
Task give_up(const NodeDriver& on, int root);
/// An operation of the others', that only counts here.
Task skip(const NodeDriver& on);
/// Whether so much goes through in one operation, so that others can count it without knowing how long it is.
bool fits_room(int participants, uint64_t bytes);
/// Whether elements of this type can be reduced in pieces.
bool is_fragmented(const Datatype& type);
/// `reads`: this participant wants the data. `in_one`: others count the operation without knowing how long
/// it is.
Task bcast(const NodeDriver& on, int root, bool reads, void* buffer, int64_t count, const Datatype& type, bool in_one = false);
/// The operands of `range`, reduced in order, at the root. `input` is not MPI_IN_PLACE.
Task reduce(const NodeDriver& on, int root, Range range, const void* input, void* receive, int64_t count, const Datatype& type,
            const Op& op);
/// Everyone gets the reduction of the other side's operands; in an intra-communicator of all.
Task allreduce(const NodeDriver& on, const Exchange& exchange, const void* input, void* receive, int64_t count,
               const Datatype& type, const Op& op);
/// The reduction as with allreduce, of which everyone gets its share.
Task reduce_scatter(const NodeDriver& on, const Exchange& exchange, const void* input, void* receive, const Shares& shares,
                    const Datatype& type, const Op& op);
Task gather(const NodeDriver& on, int root, Range range, const void* send, int64_t count, const Datatype& type,
            const Blocks& receive);
Task scatter(const NodeDriver& on, int root, Range range, const Blocks& send, void* receive, int64_t count,
             const Datatype& type);
/// Everyone gets the blocks of the other side; in an intra-communicator of all. `send` may be MPI_IN_PLACE.
Task allgather(const NodeDriver& on, const Exchange& exchange, const void* send, int64_t count, const Datatype& type,
               const Blocks& receive);
/// Intra-communicators only.
Task alltoall(const NodeDriver& on, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
