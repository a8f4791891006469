// Every algorithm, once. All work on the view they are given, whoever else the exchange has, and return an
// MPI error class. References and arrays must outlive the task. Which one is used is decided in select.h;
// collective.h is the face for callers. Ranks and roots are of the view; sizes need not be powers of two;
// counts may be 0, views of one rank are allowed.
#pragma once

#include "collective/blocks.h"
#include "collective/buffers.h"
#include "collective/task.h"
#include "collective/view.h"

namespace starling::collective {

// Barrier. Dissemination: log n rounds, all equal. Tree: up and down a binomial tree; every rank waits
// twice at most.
Task barrier_dissemination(View v);
Task barrier_tree(View v);

// Broadcast. Scatter-allgather and chain move the packed form.
Task bcast_binomial(View v, void* buffer, int64_t count, const Datatype& type, int root);
Task bcast_linear(View v, void* buffer, int64_t count, const Datatype& type, int root);
Task bcast_scatter_allgather(View v, void* buffer, int64_t count, const Datatype& type, int root);
Task bcast_chain(View v, void* buffer, int64_t count, const Datatype& type, int root);

// Reduction to a root. `send` may be MPI_IN_PLACE at the root; `receive` is used at the root only.
// Binomial keeps rank order if the operation is not commutative; Rabenseifner needs a commutative one.
Task reduce_binomial(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
Task reduce_linear(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
Task reduce_rabenseifner(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);

// Reduction to all. Recursive doubling and reduce-bcast keep rank order, the others need a commutative
// operation.
Task allreduce_recursive_doubling(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task allreduce_rabenseifner(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task allreduce_ring(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task allreduce_linear(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task allreduce_reduce_bcast(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);

// Gather and scatter, with v forms where the blocks are not uniform (linear only). MPI_IN_PLACE at the root
// as `send` of gather, as `receive` of scatter. Blocks are used at the root only.
Task gather_linear(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root);
Task gather_binomial(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root);
Task scatter_linear(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root);
Task scatter_binomial(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root);

// Gather to all. Every rank's own block is in place in `blocks` already. Ring and linear take any blocks;
// recursive doubling takes uniform ones and a power of two of ranks; Bruck takes uniform ones.
Task allgather_ring(View v, Blocks blocks);
Task allgather_linear(View v, Blocks blocks);
Task allgather_recursive_doubling(View v, Blocks blocks);
Task allgather_bruck(View v, Blocks blocks);

// All to all. Bruck takes uniform blocks only.
Task alltoall_linear(View v, Blocks send, Blocks receive);
Task alltoall_pairwise(View v, Blocks send, Blocks receive);
Task alltoall_bruck(View v, Blocks send, Blocks receive);
/// In place: the blocks to send are where the received ones go. Copies them, then pairwise.
Task alltoall_in_place(View v, Blocks blocks);

// Reduction whose result is dealt out. `input` may be `receive` (in place). Halving and pairwise need a
// commutative operation.
Task reduce_scatter_halving(View v, const void* input, void* receive, Shares shares, const Datatype& type, const Op& op);
Task reduce_scatter_pairwise(View v, const void* input, void* receive, Shares shares, const Datatype& type, const Op& op);
Task reduce_scatter_reduce(View v, const void* input, void* receive, Shares shares, const Datatype& type, const Op& op);

// Prefix reductions, in rank order. `exclusive`: without the own operand; rank 0's receive buffer is not
// touched.
Task scan_recursive_doubling(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op,
                             bool exclusive);
Task scan_linear(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive);

// Two levels, on views that are a whole side of an exchange with hosts(): within the hosts and between them. The
// reductions need hosts of consecutive ranks, or a commutative operation.
Task barrier_two_level(View v);
Task bcast_two_level(View v, void* buffer, int64_t count, const Datatype& type, int root);
Task reduce_two_level(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
Task allreduce_two_level(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
/// Every rank's own block is in place in `blocks` already.
Task allgather_two_level(View v, Blocks blocks);

}  // namespace starling::collective
