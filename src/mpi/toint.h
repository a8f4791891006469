// Handles as integers for the classes that have no objects yet: windows and files.
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Win_toint(MPI_Win win);
MPI_Win Win_fromint(int win);
int File_toint(MPI_File file);
MPI_File File_fromint(int file);

}  // namespace starling::mpi
