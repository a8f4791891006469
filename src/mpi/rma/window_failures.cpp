#include "mpi/rma/window_failures.h"

#include "comm/failures.h"
#include "mpi/rma/window_check.h"
#include "window/revocation.h"

namespace starling::mpi {

int Win_revoke(MPI_Win win) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    window::revoke(*w);
    return MPI_SUCCESS;
}

int Win_is_revoked(MPI_Win win, int* flag) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!flag) return null_argument(*w, "flag");
    *flag = comm::poll_revocation(*w->comm);
    return MPI_SUCCESS;
}

int Win_get_failed(MPI_Win win, MPI_Group* failedgrp) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!failedgrp) return null_argument(*w, "failedgrp");
    *failedgrp = comm::add_handle(comm::poll_failures(*w->comm));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
