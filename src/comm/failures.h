// The failures of a communicator's members, as this process knows them (MPIX_Comm_get_failed, MPIX_Comm_ack_failed), and the revocation of
// communicators and of the windows and files that own one. No call waits.
#pragma once

#include "comm/comm.h"

namespace starling::comm {

/// Returns the failed members that this process knows now, and those whose jobs have ended; those of earlier calls come first.
const KnownFailures& known_failures(Comm& comm);

/// Acknowledges the first `count` known failures; fewer if fewer are known. Receives from MPI_ANY_SOURCE then wait for the other members.
void acknowledge(Comm& comm, size_t count);

/// Revokes the communicator at all its members (message/revocation.h). No effect if it is revoked already.
void revoke(Comm& comm);
/// Notifies all members of a revoked communicator once more: those that this process has not notified must learn of the revocation before
/// they learn what this process does next.
void announce_revocation(const Comm& comm);

/// Returns the group of the first `count` known failures, with one reference.
Group* failed_group(const Comm& comm, size_t count);

/// Polls for news, and returns what is known then: whether the communicator is revoked, and the group of all failures, with one reference.
/// For calls of the program, which may wait for either in a loop.
bool poll_revocation(Comm& comm);
Group* poll_failures(Comm& comm);

/// Returns whether a rank of this process's job has died on this host, and the launcher has not noticed it yet, in a job that ends with its
/// ranks.
bool own_job_loses_a_rank();

}  // namespace starling::comm
