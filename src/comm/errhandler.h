// Error handlers: what happens to an error of a communicator, window, file or session (MPI 5.0
// section 9.3).
#pragma once

#include <cstdint>

#include "mpi.h"

namespace starling::comm {

/// What kind of object an error handler may be set on.
enum class HandlerKind : uint8_t { any, comm, win, file, session };
enum class HandlerAction : uint8_t { fatal, abort, give_back, call };

/// Reference counted like Group: handles apart from the library's own references.
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

    Errhandler* retain() {
        ++references;
        return this;
    }
    void release();
};

Errhandler* errors_are_fatal();
Errhandler* errors_abort();
Errhandler* errors_return();

Errhandler* make_errhandler(HandlerKind kind);  ///< one reference, one handle; action call, function unset
Errhandler* errhandler_at(uint32_t pool_index);

/// nullptr for MPI_ERRHANDLER_NULL, freed or never valid handles.
Errhandler* from_handle(MPI_Errhandler handle);
MPI_Errhandler to_handle(Errhandler* handler);

}  // namespace starling::comm
