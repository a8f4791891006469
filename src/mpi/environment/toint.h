// Handles as integers for requests and messages.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Request_toint(MPI_Request request);
MPI_Request Request_fromint(int request);
int Message_toint(MPI_Message message);
MPI_Message Message_fromint(int message);

}  // namespace starling::mpi
