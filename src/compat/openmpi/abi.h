// The binary interface of Open MPI 4 and 5.
//
// Handles are pointers. Those of predefined objects are addresses of objects that the library exports; the linker may have moved a copy
// into the program (objects.cpp). Handles of objects that the program has made are the library's own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "compat/nonstandard.h"
#include "library.h"
#include "numbers.h"

namespace starling::compat::abi {

inline constexpr const char* kShim = "libmpi.so.40";

using Comm = struct ompi_communicator_t*;
using Group = struct ompi_group_t*;
using Datatype = struct ompi_datatype_t*;
using Op = struct ompi_op_t*;
using Errhandler = struct ompi_errhandler_t*;
using Info = struct ompi_info_t*;
using Request = struct ompi_request_t*;
using Message = struct ompi_message_t*;
using Session = struct ompi_instance_t*;
using Win = struct ompi_win_t*;
using File = struct ompi_file_t*;

struct Status {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int cancelled;
    size_t bytes;
};
static_assert(sizeof(Status) == 24);

#include "callbacks.h"

inline constexpr int kLastCode = 92;
/// Version of the last standard whose constants are in mpi.h of these series. Functions of later standards exist, but mpi.h does not name
/// their constants.
inline constexpr int kVersion = 4, kSubversion = 0;
inline constexpr std::array<OwnClass, 0> kOwnClasses;
inline constexpr intptr_t kInPlace = 1, kBufferAutomatic = 2, kStatusIgnore = 0, kAllPvars = -1;
inline constexpr intptr_t kUnweighted = 2, kWeightsEmpty = 3;

/// find_here() translates a predefined handle of the program into the library's, find_there() the reverse. Other handles are returned
/// unchanged.
void* find_here(const void* there);
void* find_there(const void* here);

template <class Handle>
struct Handles;

// Conversion of Fortran's handles: numbers from 0 on for the objects in mpif.h, and the library's greater numbers for other objects.
#define COMPAT_NUMBER_IN(here, number) \
    case number:                       \
        return here;
#define COMPAT_NUMBER_OUT(here, number) \
    case here:                          \
        return number;
#define COMPAT_HANDLES(Handle, Kind, kNullHandle, HANDLE, convert)                                            \
    template <>                                                                                               \
    struct Handles<Handle> {                                                                                  \
        using There = Kind;                                                                                   \
        static Handle null() { return kNullHandle; }                                                          \
        static Handle in(Kind handle) { return static_cast<Handle>(find_here(handle)); }                      \
        static Kind out(Handle handle) { return static_cast<Kind>(find_there(handle)); }                      \
        static Handle in(int number) {                                                                        \
            switch (number) { COMPAT_##HANDLE##_NUMBERS_IN(COMPAT_NUMBER_IN) }                                \
            return library.convert##_fromint(number);                                                         \
        }                                                                                                     \
        static int number(Handle handle) {                                                                    \
            switch (reinterpret_cast<uintptr_t>(handle)) { COMPAT_##HANDLE##_NUMBERS_OUT(COMPAT_NUMBER_OUT) } \
            return library.convert##_toint(handle);                                                           \
        }                                                                                                     \
    };
COMPAT_HANDLES(MPI_Comm, Comm, MPI_COMM_NULL, MPI_COMM, Comm)
COMPAT_HANDLES(MPI_Group, Group, MPI_GROUP_NULL, MPI_GROUP, Group)
COMPAT_HANDLES(MPI_Datatype, Datatype, MPI_DATATYPE_NULL, MPI_DATATYPE, Type)
COMPAT_HANDLES(MPI_Errhandler, Errhandler, MPI_ERRHANDLER_NULL, MPI_ERRHANDLER, Errhandler)
COMPAT_HANDLES(MPI_Op, Op, MPI_OP_NULL, MPI_OP, Op)
COMPAT_HANDLES(MPI_Info, Info, MPI_INFO_NULL, MPI_INFO, Info)
COMPAT_HANDLES(MPI_Win, Win, MPI_WIN_NULL, MPI_WIN, Win)
COMPAT_HANDLES(MPI_Request, Request, MPI_REQUEST_NULL, MPI_REQUEST, Request)
COMPAT_HANDLES(MPI_Message, Message, MPI_MESSAGE_NULL, MPI_MESSAGE, Message)
COMPAT_HANDLES(MPI_Session, Session, MPI_SESSION_NULL, MPI_SESSION, Session)
COMPAT_HANDLES(MPI_File, File, MPI_FILE_NULL, MPI_FILE, File)

inline int fortran_keyval(int keyval) { return keyval; }

}  // namespace starling::compat::abi
