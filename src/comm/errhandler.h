// Error handlers: what happens to an error of a communicator, window, file or session (MPI 5.0
// section 9.3).
#pragma once

#include <cstdint>

#include "mpi.h"

namespace starling::comm {

/// What kind of object an error handler may be set on.
enum class HandlerKind : uint8_t { any, comm, win, file, session };
enum class HandlerAction : uint8_t { fatal, abort, give_back, call };

/// Reference counted like Group: handles apart from the library's own references. What is declared here is thread-safe,
/// before MPI_Init and after MPI_Finalize too (MPI 5.0 section 11.4.1), and needs no other lock.
struct Errhandler {
    static constexpr uint32_t kMagic = 0x45727248;
    uint32_t magic = 0;
    uint32_t pool_index = 0;
    uint32_t handles = 0;
    uint32_t references = 1;
    HandlerKind kind = HandlerKind::any;
    HandlerAction action = HandlerAction::call;
    union {
        MPI_Comm_errhandler_function* comm_function = nullptr;
        MPI_Win_errhandler_function* win_function;
        MPI_File_errhandler_function* file_function;
        MPI_Session_errhandler_function* session_function;
    };

    Errhandler* retain();
    void release();
};

/// The handler that is set on an object, with a reference: another thread may set another meanwhile.
Errhandler* retain_from(Errhandler* const& place);
/// Sets another one, which gets a reference.
void replace(Errhandler*& place, Errhandler* handler);

Errhandler* errors_are_fatal();
Errhandler* errors_abort();
Errhandler* errors_return();

/// Of MPI_FILE_NULL: what errors without a file handle go through, and the start of every file. A place for retain_from() and
/// replace().
extern Errhandler* file_handler;

Errhandler* make_errhandler(HandlerKind kind);  ///< one reference, one handle; action call, function unset
/// One more handle for the application.
MPI_Errhandler give_handle(Errhandler* handler);
/// The application gives a handle back; false if it is not valid. One of a predefined handler is only forgotten:
/// MPI_Comm_get_errhandler gives those too.
bool take_handle(MPI_Errhandler handle);
Errhandler* errhandler_at(uint32_t pool_index);

/// nullptr for MPI_ERRHANDLER_NULL, freed or never valid handles.
Errhandler* from_handle(MPI_Errhandler handle);
MPI_Errhandler to_handle(Errhandler* handler);

}  // namespace starling::comm
