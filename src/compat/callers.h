// How the library calls callbacks of a program whose parts may be of two languages.
#pragma once

#include "compat/convert.h"

namespace starling::compat {

/// As Foreign, for procedures of Fortran: each is false if the function is none, and then nothing was called.
struct FortranCallers {
    bool (*operation)(MPI_User_function* function, void* in, void* inout, int* length, MPI_Datatype type);
    bool (*large_operation)(MPI_User_function_c* function, void* in, void* inout, MPI_Count* length, MPI_Datatype type);
    bool (*comm_error)(MPI_Comm_errhandler_function* function, MPI_Comm comm, int* code);
    bool (*win_error)(MPI_Win_errhandler_function* function, MPI_Win win, int* code);
    bool (*file_error)(MPI_File_errhandler_function* function, MPI_File file, int* code);
    bool (*session_error)(MPI_Session_errhandler_function* function, MPI_Session session, int* code);
};

/// In src/fortran.
const FortranCallers* fortran_callers();

}  // namespace starling::compat
