// Defines Fortran's types in this library's own interface. Handles are the integers of MPI_X_toint, statuses are the C structure as eight
// integers, and all constants are the same as in C. The conversions of src/compat are instantiated with these types.
#pragma once

#include <cstdint>

#include "library.h"
#include "numbers.h"

namespace starling::compat::abi {

inline constexpr const char* kShim = "libmpifort_abi.so.1";

using Comm = int;
using Group = int;
using Datatype = int;
using Op = int;
using Errhandler = int;
using Info = int;
using Request = int;
using Message = int;
using Session = int;
using Win = int;
using File = int;
using Status = MPI_Status;

inline constexpr int kLastCode = MPI_ERR_LASTCODE;
inline constexpr intptr_t kStatusIgnore = 0, kAllPvars = 1;
// C's special addresses. A Fortran argument never has these values, because Fortran passes addresses of variables instead.
inline constexpr intptr_t kInPlace = 1, kBufferAutomatic = 2, kUnweighted = 10, kWeightsEmpty = 11;

template <class Handle>
struct Handles;

#define FORTRAN_HANDLE(Handle, kNull, convert)                                     \
    template <>                                                                    \
    struct Handles<Handle> {                                                       \
        using There = int;                                                         \
        static Handle null() { return kNull; }                                     \
        static Handle in(int number) { return library.convert##_fromint(number); } \
        static int out(Handle handle) { return library.convert##_toint(handle); }  \
    };
FORTRAN_HANDLE(MPI_Comm, MPI_COMM_NULL, Comm)
FORTRAN_HANDLE(MPI_Group, MPI_GROUP_NULL, Group)
FORTRAN_HANDLE(MPI_Datatype, MPI_DATATYPE_NULL, Type)
FORTRAN_HANDLE(MPI_Errhandler, MPI_ERRHANDLER_NULL, Errhandler)
FORTRAN_HANDLE(MPI_Op, MPI_OP_NULL, Op)
FORTRAN_HANDLE(MPI_Info, MPI_INFO_NULL, Info)
FORTRAN_HANDLE(MPI_Win, MPI_WIN_NULL, Win)
FORTRAN_HANDLE(MPI_Request, MPI_REQUEST_NULL, Request)
FORTRAN_HANDLE(MPI_Message, MPI_MESSAGE_NULL, Message)
FORTRAN_HANDLE(MPI_Session, MPI_SESSION_NULL, Session)
FORTRAN_HANDLE(MPI_File, MPI_FILE_NULL, File)

inline int fortran_keyval(int keyval) { return keyval; }

}  // namespace starling::compat::abi
