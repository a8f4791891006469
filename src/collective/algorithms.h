// Every algorithm, once: the functions of algorithms.def. All work on the view they are given, whoever else the exchange
// has, and return an MPI error class. References and arrays must outlive the task. Which one is used is decided in select.h;
// collective.h is the face for callers. Ranks and roots are of the view; sizes need not be powers of two;
// counts may be 0, views of one rank are allowed.
//
// - Reductions keep rank order if the operation is not commutative, but for those that need a commutative one.
//   MPI_IN_PLACE as `send` at the root of a reduction, or at all. `receive` of a reduction to a root is used there only.
// - Gather and scatter: MPI_IN_PLACE at the root as `send` of gather, as `receive` of scatter. Blocks are used at the root.
// - Gather to all: every rank's own block is in place in `blocks` already.
// - Reduction whose result is dealt out: `input` may be `receive` (in place).
// - Prefix reductions, in rank order; `exclusive`: without the own operand, and rank 0's receive buffer is not touched.
// - Multicast: on views that have a cast.
// - Two levels: on views that are a whole side of an exchange with hosts().
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

/// All to all in place: the blocks to send are where the received ones go. Copies them, then pairwise.
Task alltoall_in_place(View v, Blocks blocks);

}  // namespace starling::collective
