// How entry points report errors.
#pragma once

#include "mpi.h"

namespace starling::comm {
struct Comm;
}

namespace starling::mpi {

/// Reports an error on a communicator: calls its error handler with failure_text() at hand and returns the
/// code the MPI function is to return. Null: no communicator is involved, the handler of MPI_COMM_SELF is
/// called (MPI 5.0 section 9.3).
int raise(comm::Comm* comm, int error_class);

/// What the entry of a function that is not built does: raises MPI_ERR_UNSUPPORTED_OPERATION.
[[gnu::cold]] int unsupported(const char* name);

/// The same for functions that return a value: its zero, which is no valid handle.
template <class T>
T unsupported(const char* name) {
    unsupported(name);
    return T{};
}

/// What an entry does when std::bad_alloc reaches it: raises MPI_ERR_NO_MEM.
[[gnu::cold]] int out_of_memory(const char* name);

}  // namespace starling::mpi
