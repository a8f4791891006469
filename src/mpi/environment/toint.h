// Handles as integers for requests, messages and files. Files have only predefined handles.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Request_toint(MPI_Request request);
MPI_Request Request_fromint(int request);
int Message_toint(MPI_Message message);
MPI_Message Message_fromint(int message);
int File_toint(MPI_File file);
MPI_File File_fromint(int file);

}  // namespace starling::mpi
