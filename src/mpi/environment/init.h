// Starting and ending MPI (MPI 5.0 sections 11.2 to 11.4).
#pragma once

#include "mpi.h"

namespace starling::mpi {

int Init(int* argc, char*** argv);
int Init_thread(int* argc, char*** argv, int required, int* provided);
int Finalize();
int Initialized(int* flag);
int Finalized(int* flag);
int Query_thread(int* provided);
int Is_thread_main(int* flag);
int Abort(MPI_Comm comm, int errorcode);

}  // namespace starling::mpi
