// Collective operations over the shared-memory stage, for buffers of any datatype. Arguments as in collective.h, but ranks are participants
// of the exchange (exchange.h describes the order in an inter-communicator). Every participant calls the same operation. Sizes must fit:
// can_serve() of select.h checks that.
#pragma once

#include "collective/core/blocks.h"
#include "collective/core/exchange.h"
#include "collective/select.h"
#include "collective/shm/driver.h"
#include "datatype/op.h"

namespace starling::collective::node {

using datatype::Op;

/// The participants with numbers in [first, last).
struct ParticipantRange {
    int first, last;
    bool has(int i) const { return first <= i && i < last; }
};

Task barrier(const NodeDriver& on);
/// The two halves of a barrier. In arrive(), participant 0 waits for all; in release(), all wait for participant 0.
Task arrive(const NodeDriver& on);
Task release(const NodeDriver& on);
/// Replaces bcast() or release() at a root that failed with `error`: the other participants return MPIX_ERR_REVOKED, or MPI_ERR_PROC_ABORTED.
Task abandon(const NodeDriver& on, int root, int error);
/// Counts an operation in which only other participants take part, so that operation numbers stay equal on all participants.
Task skip(const NodeDriver& on);
/// Returns whether a broadcast of that size is one operation on the stage, and not several. Then participants that do not know its size can
/// count it.
bool fits_room(int participants, uint64_t bytes);
/// Returns whether elements of this type can be reduced in pieces.
bool is_fragmented(const Datatype& type);
/// `reads`: this participant receives the data. `in_one`: the broadcast must be one operation, because some participants count it without
/// knowing its length (fits_room()).
Task bcast(const NodeDriver& on, int root, bool reads, void* buffer, int64_t count, const Datatype& type, bool in_one = false);
/// Reduces the operands of `range`, in order, at the root. `input` is not MPI_IN_PLACE.
Task reduce(const NodeDriver& on, int root, ParticipantRange range, const void* input, void* receive, int64_t count,
            const Datatype& type, const Op& op);
/// Reduces the operands of the other side (in an intra-communicator, of all participants) to every participant.
Task allreduce(const NodeDriver& on, const Exchange& exchange, const void* input, void* receive, int64_t count,
               const Datatype& type, const Op& op);
/// Reduces like allreduce(); every participant gets its share of the result.
Task reduce_scatter(const NodeDriver& on, const Exchange& exchange, const void* input, void* receive, const Shares& shares,
                    const Datatype& type, const Op& op);
Task gather(const NodeDriver& on, int root, ParticipantRange range, const void* send, int64_t count, const Datatype& type,
            const Blocks& receive);
Task scatter(const NodeDriver& on, int root, ParticipantRange range, const Blocks& send, void* receive, int64_t count,
             const Datatype& type);
/// Gathers the blocks of the other side (in an intra-communicator, of all participants) at every participant. `send` may be MPI_IN_PLACE.
Task allgather(const NodeDriver& on, const Exchange& exchange, const void* send, int64_t count, const Datatype& type,
               const Blocks& receive);
/// Exchanges blocks between all participants, in intra-communicators only.
Task alltoall(const NodeDriver& on, const Blocks& send, const Blocks& receive);

}  // namespace starling::collective::node
