// The collective operations on a view, for the layers above; the selection table chooses the algorithm. Start the returned task with run()
// or start() (collective_request.h), or await it in another task.
//
// Arguments mean what they mean in MPI (5.0 chapter 6), MPI_IN_PLACE included; roots and blocks are by rank of the view. They are not
// checked here. Buffers, arrays and referenced objects must last until the task is done. A call may copy the caller's own data at once,
// before the task is started, so every returned task must be started.
#pragma once

#include "collective/core/blocks.h"
#include "collective/core/buffers.h"
#include "collective/core/task.h"
#include "collective/core/view.h"

namespace starling::collective {

/// Operations within one group: the view is a whole intra-communicator or one side of an inter-communicator.
Task barrier(View v);
Task bcast(View v, void* buffer, int64_t count, const Datatype& type, int root);
Task reduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
Task allreduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task gather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root);
Task scatter(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root);
Task allgather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive);
/// `in_place`: the data to send is in `receive`, and `send` is ignored.
Task alltoall(View v, bool in_place, Blocks send, Blocks receive);
Task reduce_scatter(View v, const void* send, void* receive, Shares shares, const Datatype& type, const Op& op);
Task scan(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, bool exclusive);

/// Operations between the groups of an inter-communicator. The view is that of all participants (View::all()); roots are MPI_ROOT,
/// MPI_PROC_NULL or a rank of the remote group; blocks are by rank of the remote group.
namespace inter {

Task barrier(View v);
Task bcast(View v, void* buffer, int64_t count, const Datatype& type, int root);
Task reduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op, int root);
Task allreduce(View v, const void* send, void* receive, int64_t count, const Datatype& type, const Op& op);
Task gather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive, int root);
Task scatter(View v, Blocks send, void* receive, int64_t count, const Datatype& type, int root);
Task allgather(View v, const void* send, int64_t count, const Datatype& type, Blocks receive);
Task alltoall(View v, Blocks send, Blocks receive);
/// `shares` are the shares of the local group's ranks.
Task reduce_scatter(View v, const void* send, void* receive, Shares shares, const Datatype& type, const Op& op);

}  // namespace inter

}  // namespace starling::collective
