// Declares every algorithm of algorithms.def. Each works on the view that it is given, whatever other participants the exchange has, and
// returns an MPI error class. References and arrays must outlive the task. select.h decides which one is used; callers use collective.h.
// Ranks and roots are those of the view; sizes need not be powers of two; counts may be 0, and a view may have one rank.
//
// - Reductions keep rank order if the operation is not commutative, except those that require a commutative one. `send` may be MPI_IN_PLACE
// at the root of a reduction to a root, and at all ranks of an allreduce. The `receive` of a reduction to a root is used at the root only.
// - Gather and scatter: MPI_IN_PLACE at the root as `send` of gather, as `receive` of scatter. Blocks are used at the root only.
// - Allgather: every rank's own block is already in place in `blocks`.
// - Reduce-scatter: `input` may be `receive` (in place).
// - Scan: in rank order. `exclusive` leaves out the own operand and does not write rank 0's receive buffer.
// - Multicast: only for views with a multicast channel (View::cast; for turns View::turns).
// - Two levels: only for views that are a whole side of an exchange whose hosts() is not null.
#pragma once

#include "collective/core/blocks.h"
#include "collective/core/buffers.h"
#include "collective/core/task.h"
#include "collective/core/view.h"
#include "collective/select.h"

namespace starling::collective {

#define ALGORITHM(kind, name, ...) signature::kind kind##_##name;
#define NODE(kind)
#include "collective/algorithms.def"
#undef NODE
#undef ALGORITHM

/// The first half of a ring allreduce: reduces once around the ring. Rank r ends with the result of piece r + 1 (part_of()) in `receive`, whose
/// other pieces have intermediate values.
Task reduce_around(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);

/// The linear allgather with this rank's own block elsewhere, at `own`: sends it from there, and copies it into `blocks` at the end. A copy
/// that has just been written would be slower to send, because its cache lines are modified.
Task allgather_linear_from(View v, const void* own, int64_t count, const Datatype& type, Blocks blocks);

/// All-to-all in place: the blocks to send are in the receive buffer. Copies them, then exchanges them pairwise.
Task alltoall_in_place(View v, Blocks blocks);

}  // namespace starling::collective
