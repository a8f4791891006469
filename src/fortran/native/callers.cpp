// Calls a program's callbacks in this library's own interface, in which some of the reduction operations and error handlers may be Fortran
// procedures.
#include "compat/callers.h"

#include <cstdio>
#include <cstdlib>

#include "compat/deferred_handles.h"

namespace starling::compat {

namespace {

template <auto kFortran, class Function, class Integer>
void call_operation(Function* function, void* in, void* inout, Integer* length, MPI_Datatype type) {
    if (!(fortran_callers()->*kFortran)(function, in, inout, length, type)) function(in, inout, length, &type);
}
template <auto kFortran, class Function, class Handle>
void call_handler(Function* function, Handle handle, int* code) {
    if (!(fortran_callers()->*kFortran)(function, handle, code)) function(&handle, code);
}

[[gnu::constructor]] void introduce() {
    if (starling_set_foreign(&callers)) return;
    std::fprintf(
        stderr,
        "starling: this process has loaded %s and a library with the binary interface of another MPI, whose handles differ\n",
        abi::kShim);
    std::exit(127);
}

}  // namespace

const Foreign callers = {
    .operation = call_operation<&FortranCallers::operation, MPI_User_function, int>,
    .large_operation = call_operation<&FortranCallers::large_operation, MPI_User_function_c, MPI_Count>,
    .comm_error = call_handler<&FortranCallers::comm_error, MPI_Comm_errhandler_function, MPI_Comm>,
    .win_error = call_handler<&FortranCallers::win_error, MPI_Win_errhandler_function, MPI_Win>,
    .file_error = call_handler<&FortranCallers::file_error, MPI_File_errhandler_function, MPI_File>,
    .comm_made = comm_made,
    .session_error = call_handler<&FortranCallers::session_error, MPI_Session_errhandler_function, MPI_Session>,
    .error_code = [](int code) { return code; },
};

}  // namespace starling::compat
