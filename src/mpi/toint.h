// Handles as integers for the classes that have no objects yet: windows, files and sessions.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Win_toint(MPI_Win win);
MPI_Win Win_fromint(int win);
int File_toint(MPI_File file);
MPI_File File_fromint(int file);
int Session_toint(MPI_Session session);
MPI_Session Session_fromint(int session);

}  // namespace starling::mpi
