// Checks of the functions on MPI sessions; errors are raised on the session's error handler.
#pragma once

#include "comm/session.h"
#include "mpi/common/check.h"

namespace starling::mpi {

/// Reports an error on a session and returns the code for the caller.
inline int raise(const comm::Session& session, int error) {
    return raise_through(session.errhandler, comm::HandlerKind::session, {.session = comm::to_handle(&session)}, error);
}

/// Reports MPI_ERR_SESSION, or that MPI is not running.
inline int bad_session() { return bad_handle(nullptr, MPI_ERR_SESSION, "session"); }
inline int null_argument(const comm::Session& session, const char* name) { return raise(session, null_pointer(name)); }

}  // namespace starling::mpi
