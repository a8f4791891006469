// The end of a collective operation that makes something: what may fail at one member alone fails at all, or nowhere.
#pragma once

#include "collective/core/task.h"
#include "collective/core/view.h"
#include "comm/comm.h"

namespace starling::collective {

/// What the members of an intra-communicator have come to together: MPI_SUCCESS if each gives that as its `error`. Otherwise an error
/// everywhere, which at those that have failed is their own with its failure_text(), at the others the lowest such rank's; `what` says
/// what was to be made. Collective, and blocks. Whoever is through knows that all others have called it; what can fail comes before.
/// Who had to take of the memory that is kept back (base/kept_memory.h) has failed.
int agree(comm::Comm& comm, int error, const char* what);

/// The same of a view's members, by messages under its tag. All of them come here, whatever has failed: after a death some have heard of
/// it, and others not yet.
Task agree(View v, int error, const char* what);

}  // namespace starling::collective
