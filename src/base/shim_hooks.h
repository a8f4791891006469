// Hooks for programs built for another MPI's binary interface. A shim (src/compat) translates between them and this library, and their
// callbacks take the other MPI's handles. Some kinds of callback have no extra-state argument from which the shim could recognize the
// program's function, so the library calls these callbacks through the shim.
#pragma once

#include "mpi.h"

namespace starling {

/// Functions by which the shim calls the program's callbacks; `function` is what the program passed in.
struct Foreign {
    void (*operation)(MPI_User_function* function, void* in, void* inout, int* length, MPI_Datatype type);
    void (*large_operation)(MPI_User_function_c* function, void* in, void* inout, MPI_Count* length, MPI_Datatype type);
    void (*comm_error)(MPI_Comm_errhandler_function* function, MPI_Comm comm, int* code);
    void (*win_error)(MPI_Win_errhandler_function* function, MPI_Win win, int* code);
    void (*file_error)(MPI_File_errhandler_function* function, MPI_File file, int* code);
    /// Notifies the shim that MPI_Comm_idup has written a handle to `place`.
    void (*comm_made)(MPI_Comm* place);
    void (*session_error)(MPI_Session_errhandler_function* function, MPI_Session session, int* code);
    /// Converts an error code for an array of the program whose length the shim does not know.
    int (*error_code)(int code);
};

/// The shim's functions; null if the program uses this library's own interface.
extern const Foreign* foreign;

}  // namespace starling

/// Sets the functions by which callbacks are called. A shim calls it before any other function. Returns false if there is another shim.
extern "C" bool starling_set_foreign(const starling::Foreign* foreign);
