// The library's life: it runs from MPI_Init or the first session to the end of the last of them.
#pragma once

namespace starling::mpi {

/// Gives the variables the values of file and environment: the first call does, from MPI_Init or MPI_T_init_thread.
/// Thread-safe.
void read_settings();

/// A session opens: starts the library if it doesn't run. MPI_ERR_OTHER with failure_text() if it can't.
int acquire_for_session(int thread_level);
/// A session closes. Not while holding the library's lock.
void release_for_session();

}  // namespace starling::mpi
