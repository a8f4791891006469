// The end of MPIX_Comm_replace: survivors and substitutes create a communicator with the survivors' old ranks.
//
// The usual end of a creation (collective/agreement.h) may succeed on some members and fail on others if a member dies in it. Here an
// agreement among the living decides. A member that knows of a death withdraws from it and does not wait: others may have given up
// before they could vote, for example the survivors if the one that had started the substitutes has died.
#pragma once

#include "collective/core/task.h"
#include "comm/comm.h"

namespace starling::collective {

/// Ends a step of a call. `error` is this member's, with its failure_text(). Returns MPI_SUCCESS on all living members if all pass it,
/// otherwise an error on all: MPIX_ERR_PROC_FAILED if a member has failed, its own error on a member that has one. References must outlive
/// the task.
Task agree_in_spite_of_failures(comm::Comm& comm, int error);

/// Creates an intra-communicator of both groups of `inter`. Survivors pass the rank that they are to have in it. Substitutes pass
/// kSubstitute, and get the ranks that are left, in their order. Succeeds on all living members or fails on all; `error_here` as in
/// communicator/creation.h.
Task join_substitutes(comm::Comm& inter, int rank, comm::Comm*& result, int error_here);
inline constexpr int kSubstitute = -1;

}  // namespace starling::collective
