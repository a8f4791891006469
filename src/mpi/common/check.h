// Provides every entry point with the library's lock, the argument checks, and the path of an error to the application. A check that
// succeeds costs one predictable branch; the code of a failed one is out of line. Messages name the function that the program has called
// (base/current_function.h).
#pragma once

#include "base/kept_memory.h"
#include "base/lock.h"
#include "comm/comm.h"
#include "comm/errhandler.h"
#include "mpi.h"
#include "runtime/runtime.h"

namespace starling::mpi {

using runtime::LibraryPhase, runtime::phase;

/// The lock of a collective call that creates an object. While it is held, allocations may use the memory kept in reserve, because the
/// other members wait for this process even if it is out of memory.
class MakingLock {
    Lock lock_;
    KeptMemory kept_;
};

/// Reports an error on a communicator: calls its error handler, and returns the code that the MPI function is to return. The code keeps
/// failure_text() (comm/error_sentences.h), for the handler too. If `comm` is null, the error belongs to no communicator: the handler of MPI_COMM_SELF is called (MPI 5.0 section 9.3), or
/// that of MPI_COMM_WORLD if MPI_COMM_SELF's has not been set, or the initial handler if there is neither. Clears failure_text(). The program's handler runs outside the library
/// (base/lock.h), so the caller must hold references to all objects that it uses afterwards.
[[gnu::cold]] int raise(comm::Comm* comm, int error);

/// Returns a code for an error of an operation on `comm` (null: none) that keeps failure_text() (comm/error_sentences.h). For codes that the
/// program gets beside a return value: in statuses and arrays. Calls no error handler; a later raise() of the code keeps it.
[[gnu::cold]] int keep_failure(comm::Comm* comm, int error);

/// The object that an error belongs to: a communicator, window, file or MPI session.
union ErrorSubject {
    MPI_Comm comm;
    MPI_Win win;
    MPI_File file;
    MPI_Session session;
};
/// Reports an error through the handler stored in `place`, which is set on `subject`.
[[gnu::cold]] int raise_through(comm::Errhandler* const& place, comm::HandlerKind kind, ErrorSubject subject, int error);

/// Raises MPI_ERR_UNSUPPORTED_OPERATION; called by the entry point of a function that is not implemented.
[[gnu::cold]] int unsupported(const char* name);

/// Raises MPI_ERR_UNSUPPORTED_OPERATION for a function that returns a value instead of an error code; returns 0, which is not a valid
/// handle.
template <class T>
T unsupported(const char* name) {
    unsupported(name);
    return T{};
}

/// Raises MPI_ERR_NO_MEM after std::bad_alloc has reached an entry point; ends the process if other processes would wait for it.
[[gnu::cold]] int out_of_memory();

// The functions below report wrong arguments: each raises the error on `comm` (null: no communicator is involved) and returns the code.
// bad_comm() and bad_handle() also report that MPI is not initialized; a function that calls them needs no check for that.
[[gnu::cold]] int not_running();
[[gnu::cold]] int bad_comm(MPI_Comm handle);
/// Reports an invalid handle of another kind: `what` as in "group", `error_class` as MPI_ERR_GROUP.
[[gnu::cold]] int bad_handle(comm::Comm* comm, int error_class, const char* what);
[[gnu::cold]] int bad_rank(comm::Comm* comm, int rank);
[[gnu::cold]] int bad_root(comm::Comm* comm, int root);
[[gnu::cold]] int bad_tag(comm::Comm* comm, int tag);
[[gnu::cold]] int bad_count(comm::Comm* comm, MPI_Count count);
[[gnu::cold]] int bad_type(comm::Comm* comm, MPI_Datatype type);
[[gnu::cold]] int bad_buffer(comm::Comm* comm);
/// Sets the failure text for a null pointer passed as argument `name`, and returns MPI_ERR_ARG. Unlike null_argument(), it does not call
/// the error handler, so that the process can still take part in a collective call.
[[gnu::cold]] int null_pointer(const char* name);
/// Sets the failure of null_pointer() and calls the communicator's error handler.
[[gnu::cold]] int null_argument(comm::Comm* comm, const char* name);
/// Reports an inter-communicator where the function requires an intra-communicator, or the reverse.
[[gnu::cold]] int wrong_kind_of_comm(comm::Comm* comm);

inline bool valid_destination(const comm::Comm& comm, int rank) {
    return static_cast<unsigned>(rank) < static_cast<unsigned>(comm.peer_count) || rank == MPI_PROC_NULL;
}
inline bool valid_source(const comm::Comm& comm, int rank) { return valid_destination(comm, rank) || rank == MPI_ANY_SOURCE; }
inline bool valid_tag(int tag) { return tag >= 0; }
inline bool valid_receive_tag(int tag) { return tag >= 0 || tag == MPI_ANY_TAG; }
/// Returns whether `root` is a rank (intra-communicator), or a rank of the remote group, MPI_ROOT or MPI_PROC_NULL (inter-communicator).
inline bool valid_root(const comm::Comm& comm, int root) {
    if (static_cast<unsigned>(root) < static_cast<unsigned>(comm.peer_count)) return true;
    return comm.is_inter && (root == MPI_ROOT || root == MPI_PROC_NULL);
}

}  // namespace starling::mpi
