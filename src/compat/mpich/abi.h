// The binary interface that MPICH 3.1 and later, Intel MPI, MVAPICH and Cray MPICH share.
//
// Handles are ints: two bits say whether the object is predefined, four bits name the kind, and the rest is a number. For an object that
// the program has made, it is the library's number (MPI_X_toint), so no table is needed.
#pragma once

#include <cstdint>

#include "compat/nonstandard.h"
#include "library.h"
#include "numbers.h"

namespace starling::compat::abi {

inline constexpr const char* kShim = "libmpi.so.12";

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
using File = struct FileObject*;

struct Status {
    int count_low, count_high_and_cancelled;
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
};
static_assert(sizeof(Status) == 20);

#include "callbacks.h"

inline constexpr int kLastCode = 0x3fffffff;
/// MPI version that MPI_Get_version reports. MPICH 5 implements the same standard as Starling, and programs of all series since 3.1 run
/// with it.
inline constexpr int kVersion = MPI_VERSION, kSubversion = MPI_SUBVERSION;
inline constexpr OwnClass kOwnClasses[] = {{104, "MPIX_ERR_EAGAIN"}, {105, "MPIX_ERR_NOREQ"}};
inline constexpr intptr_t kInPlace = -1, kBufferAutomatic = -2, kStatusIgnore = 1, kAllPvars = 1;
// Values of MPI_UNWEIGHTED and MPI_WEIGHTS_EMPTY, which this interface exports as two variables.
inline constexpr intptr_t kUnweighted = 10, kWeightsEmpty = 11;

/// Mask of the upper six bits of a handle that the program has made; the lower bits are the library's number of the object.
inline constexpr uint32_t kKindBits = 0xfc000000;
constexpr uint32_t kind_bits(uint32_t kind) { return 0x80000000 | kind << 26; }

template <class Handle>
struct Handles;

#define COMPAT_CASE_IN(here, there) \
    case there:                     \
        return here;
#define COMPAT_CASE_OUT(here, there) \
    case here:                       \
        return static_cast<int>(there);
#define COMPAT_HANDLES(Handle, HANDLE, kNullHandle, kKind, convert)                                                        \
    template <>                                                                                                            \
    struct Handles<Handle> {                                                                                               \
        using There = int;                                                                                                 \
        static Handle null() { return kNullHandle; }                                                                       \
        static Handle in(int handle) {                                                                                     \
            const auto word = static_cast<uint32_t>(handle);                                                               \
            switch (word) { COMPAT_##HANDLE##_IN(COMPAT_CASE_IN) }                                                         \
            return (word & kKindBits) == kind_bits(kKind) ? library.convert##_fromint(static_cast<int>(word & ~kKindBits)) \
                                                          : kNullHandle;                                                   \
        }                                                                                                                  \
        static int out(Handle handle) {                                                                                    \
            switch (reinterpret_cast<uintptr_t>(handle)) { COMPAT_##HANDLE##_OUT(COMPAT_CASE_OUT) }                        \
            return static_cast<int>(kind_bits(kKind) | static_cast<uint32_t>(library.convert##_toint(handle)));            \
        }                                                                                                                  \
    };
COMPAT_HANDLES(MPI_Comm, MPI_COMM, MPI_COMM_NULL, 1, Comm)
COMPAT_HANDLES(MPI_Group, MPI_GROUP, MPI_GROUP_NULL, 2, Group)
COMPAT_HANDLES(MPI_Datatype, MPI_DATATYPE, MPI_DATATYPE_NULL, 3, Type)
COMPAT_HANDLES(MPI_Errhandler, MPI_ERRHANDLER, MPI_ERRHANDLER_NULL, 5, Errhandler)
COMPAT_HANDLES(MPI_Op, MPI_OP, MPI_OP_NULL, 6, Op)
COMPAT_HANDLES(MPI_Info, MPI_INFO, MPI_INFO_NULL, 7, Info)
COMPAT_HANDLES(MPI_Win, MPI_WIN, MPI_WIN_NULL, 8, Win)
COMPAT_HANDLES(MPI_Request, MPI_REQUEST, MPI_REQUEST_NULL, 11, Request)
COMPAT_HANDLES(MPI_Message, MPI_MESSAGE, MPI_MESSAGE_NULL, 12, Message)
COMPAT_HANDLES(MPI_Session, MPI_SESSION, MPI_SESSION_NULL, 14, Session)

/// MPI_File is a pointer in this interface, unlike its other handles.
template <>
struct Handles<MPI_File> {
    using There = File;
    static MPI_File null() { return MPI_FILE_NULL; }
    static MPI_File in(File file) { return file ? reinterpret_cast<MPI_File>(file) : MPI_FILE_NULL; }
    static File out(MPI_File file) { return file == MPI_FILE_NULL ? nullptr : reinterpret_cast<File>(file); }
    // conversions of Fortran's handles
    static MPI_File in(int file) { return file == 0 ? MPI_FILE_NULL : library.File_fromint(file); }
    static int number(MPI_File file) { return file == MPI_FILE_NULL ? 0 : library.File_toint(file); }
};

/// In Fortran the keyvals of predefined attributes are those of C plus 1.
inline int fortran_keyval(int keyval) { return keyval_in(keyval - 1) != keyval - 1 ? keyval - 1 : keyval; }

}  // namespace starling::compat::abi
