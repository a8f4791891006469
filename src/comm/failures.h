// The failures of a communicator's members, as this process knows them (MPIX_Comm_get_failed, MPIX_Comm_ack_failed). All calls are local.
#pragma once

#include "comm/comm.h"

namespace starling::comm {

/// Returns the failed members that this process knows now, and those whose jobs have ended; those of earlier calls come first.
const KnownFailures& known_failures(Comm& comm);

/// Acknowledges the first `count` known failures; fewer if fewer are known. Receives from MPI_ANY_SOURCE then wait for the other members.
void acknowledge(Comm& comm, size_t count);

/// Returns the group of the first `count` known failures, with one reference.
Group* failed_group(const Comm& comm, size_t count);

}  // namespace starling::comm
