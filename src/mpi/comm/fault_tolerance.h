// Fault tolerance: revoking and shrinking communicators, agreements, and known failures (MPIX_, docs/fault-tolerance.md).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Comm_revoke(MPI_Comm comm);
int Comm_is_revoked(MPI_Comm comm, int* flag);
int Comm_shrink(MPI_Comm comm, MPI_Comm* newcomm);
int Comm_ishrink(MPI_Comm comm, MPI_Comm* newcomm, MPI_Request* request);
int Comm_failure_ack(MPI_Comm comm);
int Comm_failure_get_acked(MPI_Comm comm, MPI_Group* failedgrp);
int Comm_get_failed(MPI_Comm comm, MPI_Group* failedgrp);
int Comm_ack_failed(MPI_Comm comm, int num_to_ack, int* num_acked);
int Comm_agree(MPI_Comm comm, int* flag);
int Comm_iagree(MPI_Comm comm, int* flag, MPI_Request* request);

}  // namespace starling::mpi
