// Programs that are built for another MPI's binary interface: a shim stands between them and this library (src/compat), and their
// callbacks take handles of theirs. Where a callback has no extra state by which the shim could tell whose it is, the library
// has the shim call it.
#pragma once

#include "mpi.h"

namespace starling {

/// How callbacks of the program are called; `function` is what it gave.
struct Foreign {
    void (*operation)(MPI_User_function* function, void* in, void* inout, int* length, MPI_Datatype type);
    void (*large_operation)(MPI_User_function_c* function, void* in, void* inout, MPI_Count* length, MPI_Datatype type);
    void (*comm_error)(MPI_Comm_errhandler_function* function, MPI_Comm comm, int* code);
    void (*win_error)(MPI_Win_errhandler_function* function, MPI_Win win, int* code);
    void (*file_error)(MPI_File_errhandler_function* function, MPI_File file, int* code);
    /// MPI_Comm_idup has written a handle.
    void (*comm_made)(MPI_Comm* place);
    void (*session_error)(MPI_Session_errhandler_function* function, MPI_Session session, int* code);
};

/// Null: the program is of this interface.
extern const Foreign* foreign;

}  // namespace starling

/// For shims: from now on callbacks are called this way. Before anything else is called. False: there is another shim.
extern "C" bool starling_set_foreign(const starling::Foreign* foreign);
