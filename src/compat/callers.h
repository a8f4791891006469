// Calls of a program's callbacks by the library, where the callback may be a C function or a Fortran procedure.
#pragma once

#include "compat/convert.h"

namespace starling::compat {

/// Functions that call a Fortran procedure, the counterpart of Foreign (base/shim_hooks.h) for C. Each returns false, without a call, if
/// `function` is not a Fortran procedure.
struct FortranCallers {
    bool (*operation)(MPI_User_function* function, void* in, void* inout, int* length, MPI_Datatype type);
    bool (*large_operation)(MPI_User_function_c* function, void* in, void* inout, MPI_Count* length, MPI_Datatype type);
    bool (*comm_error)(MPI_Comm_errhandler_function* function, MPI_Comm comm, int* code);
    bool (*win_error)(MPI_Win_errhandler_function* function, MPI_Win win, int* code);
    bool (*file_error)(MPI_File_errhandler_function* function, MPI_File file, int* code);
    bool (*session_error)(MPI_Session_errhandler_function* function, MPI_Session session, int* code);
};

/// Defined in src/fortran.
const FortranCallers* fortran_callers();

}  // namespace starling::compat
