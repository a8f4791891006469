// Error handlers, which decide what an error of a communicator, window, file or session does (MPI 5.0 section 9.3).
#pragma once

#include <cstdint>

#include "mpi.h"

namespace starling::comm {

/// The kind of object on which an error handler may be set.
enum class HandlerKind : uint8_t { any, comm, win, file, session };
enum class HandlerAction : uint8_t { fatal, abort, return_handle, call };

/// An error handler. Like those of a Group, handles and the library's own references are counted separately. All declarations here are
/// thread-safe, also before MPI_Init and after MPI_Finalize (MPI 5.0 section 11.4.1), and need no other lock.
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

/// Returns the handler that is set in `place`, a member of an object. Retains it, because another thread may replace it meanwhile.
Errhandler* retain_from(Errhandler* const& place);
/// Sets another handler in `place`, and retains it.
void replace(Errhandler*& place, Errhandler* handler);

Errhandler* errors_are_fatal();
Errhandler* errors_abort();
Errhandler* errors_return();

/// The handler of MPI_FILE_NULL, for errors without a file handle, and the initial one of every file. May be passed to retain_from() and
/// replace().
extern Errhandler* file_handler;

/// Returns a new handler with one reference, one handle and action `call`; the caller sets its function.
Errhandler* make_errhandler(HandlerKind kind);
/// Adds a handle for the application.
MPI_Errhandler add_handle(Errhandler* handler);
/// Drops a handle of the application; returns false if it is not valid. Handles of predefined handlers are not counted:
/// MPI_Comm_get_errhandler returns those too.
bool drop_handle(MPI_Errhandler handle);
Errhandler* errhandler_at(uint32_t pool_index);

/// Returns the handler of a handle; nullptr for MPI_ERRHANDLER_NULL and for freed or invalid handles.
Errhandler* from_handle(MPI_Errhandler handle);
MPI_Errhandler to_handle(Errhandler* handler);

}  // namespace starling::comm
