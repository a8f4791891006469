// Handles as integers for requests, messages and the classes that have no objects yet: windows and files.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Request_toint(MPI_Request request);
MPI_Request Request_fromint(int request);
int Message_toint(MPI_Message message);
MPI_Message Message_fromint(int message);
int Win_toint(MPI_Win win);
MPI_Win Win_fromint(int win);
int File_toint(MPI_File file);
MPI_File File_fromint(int file);

}  // namespace starling::mpi
