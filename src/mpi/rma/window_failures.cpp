#include "mpi/rma/window_failures.h"

#include "comm/failures.h"
#include "mpi/rma/window_check.h"
#include "progress/engine.h"
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
    comm::Comm* const c = w->comm;
    const comm::ReferenceGuard kept(c);
    if (!c->collective.revoked()) progress::test();
    *flag = c->collective.revoked();
    return MPI_SUCCESS;
}

int Win_get_failed(MPI_Win win, MPI_Group* failedgrp) {
    Lock lock;
    Window* w = window::from_handle(win);
    if (!w) return bad_win(win);
    if (!failedgrp) return null_argument(*w, "failedgrp");
    comm::Comm* const c = w->comm;
    const comm::ReferenceGuard kept(c);
    progress::test();
    *failedgrp = comm::add_handle(comm::failed_group(*c, comm::known_failures(*c).ranks.size()));
    return MPI_SUCCESS;
}

}  // namespace starling::mpi
