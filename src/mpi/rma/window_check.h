// Checks of the functions on windows; errors are raised on the window's error handler.
#pragma once

#include "mpi/common/check.h"
#include "window/window.h"

namespace starling::mpi {

using window::Window;

/// Reports an error on a window and returns the code for the caller; does nothing for MPI_SUCCESS.
inline int raise(Window& window, int error) {
    if (error == MPI_SUCCESS) [[likely]]
        return error;
    return raise_through(window.errhandler, comm::HandlerKind::win, {.win = window::to_handle(&window)}, error);
}

/// Reports MPI_ERR_WIN, or that MPI is not running.
[[gnu::cold]] int bad_win(MPI_Win handle);
[[gnu::cold]] int null_argument(Window& window, const char* name);
[[gnu::cold]] int bad_rank(const Window& window, int rank);
/// Returns MPI_SUCCESS if `rank` is a rank of the window or MPI_PROC_NULL; otherwise reports MPI_ERR_RANK.
inline int check_rank(const Window& window, int rank) {
    if ((rank >= 0 && rank < window.size()) || rank == MPI_PROC_NULL) [[likely]]
        return MPI_SUCCESS;
    return bad_rank(window, rank);
}

}  // namespace starling::mpi
