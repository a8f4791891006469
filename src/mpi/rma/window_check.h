// What all functions on windows share: errors go to the window's error handler.
#pragma once

#include "mpi/common/check.h"
#include "window/window.h"

namespace starling::mpi {

using window::Window;

/// Reports an error on a window and gives the code to return; of MPI_SUCCESS that.
inline int raise(Window& window, int error) {
    if (error == MPI_SUCCESS) [[likely]]
        return error;
    return raise_through(window.errhandler, comm::HandlerKind::win, {.win = window::to_handle(&window)}, error);
}

/// MPI_ERR_WIN, or that MPI does not run.
[[gnu::cold]] int bad_win(MPI_Win handle);
[[gnu::cold]] int null_argument(Window& window, const char* name);
[[gnu::cold]] int bad_rank(const Window& window, int rank);
/// MPI_ERR_RANK if it is no rank of the window; MPI_PROC_NULL is one.
inline int check_rank(const Window& window, int rank) {
    if ((rank >= 0 && rank < window.size()) || rank == MPI_PROC_NULL) [[likely]]
        return MPI_SUCCESS;
    return bad_rank(window, rank);
}

}  // namespace starling::mpi
