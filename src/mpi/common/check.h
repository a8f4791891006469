// What every entry point uses: the library's lock, argument checks, and the way an error takes to the
// application. Checks cost one predictable branch where nothing is wrong; what happens otherwise is out of
// line.
// Messages name the function that the program has called (base/current_function.h).
#pragma once

#include "base/kept_memory.h"
#include "base/lock.h"
#include "comm/comm.h"
#include "comm/errhandler.h"
#include "mpi.h"
#include "runtime/runtime.h"

namespace starling::mpi {

using runtime::Phase, runtime::phase;

/// The lock of a collective call that makes something: the others wait for this process, whatever memory it has.
class MakingLock {
    Lock lock_;
    KeptMemory kept_;
};

/// Reports an error on a communicator: calls its error handler with failure_text() at hand and returns the
/// code the MPI function is to return. Null: no communicator is involved, the handler of MPI_COMM_SELF is
/// called (MPI 5.0 section 9.3), or that of MPI_COMM_WORLD if MPI_COMM_SELF's has not been set. Clears failure_text(). The program's handler runs outside the library (base/lock.h): what the
/// caller goes on with afterwards must be held.
[[gnu::cold]] int raise(comm::Comm* comm, int error);

/// The object other than a communicator that an error belongs to.
union ErrorSubject {
    MPI_Comm comm;
    MPI_Win win;
    MPI_File file;
    MPI_Session session;
};
/// Reports an error through the handler that is set on `subject`, at `place`.
[[gnu::cold]] int raise_through(comm::Errhandler* const& place, comm::HandlerKind kind, ErrorSubject subject, int error);

/// What the entry of a function that is not built does: raises MPI_ERR_UNSUPPORTED_OPERATION.
[[gnu::cold]] int unsupported(const char* name);

/// The same for functions that return a value: its zero, which is no valid handle.
template <class T>
T unsupported(const char* name) {
    unsupported(name);
    return T{};
}

/// What an entry does when std::bad_alloc reaches it: raises MPI_ERR_NO_MEM, or ends the process where others would wait for it.
[[gnu::cold]] int out_of_memory();

// The answers to wrong arguments: each raises the error on `comm` (null: none is involved) and returns the
// code. bad_comm() and bad_handle() also say so if MPI is not initialized; for them no other check is
// needed.
[[gnu::cold]] int not_running();
[[gnu::cold]] int bad_comm(MPI_Comm handle);
/// A handle of another kind: `what` as in "group", `error_class` as MPI_ERR_GROUP.
[[gnu::cold]] int bad_handle(comm::Comm* comm, int error_class, const char* what);
[[gnu::cold]] int bad_rank(comm::Comm* comm, int rank);
[[gnu::cold]] int bad_root(comm::Comm* comm, int root);
[[gnu::cold]] int bad_tag(comm::Comm* comm, int tag);
[[gnu::cold]] int bad_count(comm::Comm* comm, MPI_Count count);
[[gnu::cold]] int bad_type(comm::Comm* comm, MPI_Datatype type);
[[gnu::cold]] int bad_buffer(comm::Comm* comm);
/// A null pointer where a result goes or an array is needed.
[[gnu::cold]] int null_argument(comm::Comm* comm, const char* name);
/// The communicator is an inter-communicator (or is none) where the function wants the other kind.
[[gnu::cold]] int wrong_kind_of_comm(comm::Comm* comm);

inline bool valid_destination(const comm::Comm& comm, int rank) {
    return static_cast<unsigned>(rank) < static_cast<unsigned>(comm.peer_count) || rank == MPI_PROC_NULL;
}
inline bool valid_source(const comm::Comm& comm, int rank) { return valid_destination(comm, rank) || rank == MPI_ANY_SOURCE; }
inline bool valid_tag(int tag) { return tag >= 0; }
inline bool valid_receive_tag(int tag) { return tag >= 0 || tag == MPI_ANY_TAG; }
/// Intra-communicators: a rank. Inter-communicators: a rank of the remote group, MPI_ROOT or MPI_PROC_NULL.
inline bool valid_root(const comm::Comm& comm, int root) {
    if (static_cast<unsigned>(root) < static_cast<unsigned>(comm.peer_count)) return true;
    return comm.is_inter && (root == MPI_ROOT || root == MPI_PROC_NULL);
}

}  // namespace starling::mpi
