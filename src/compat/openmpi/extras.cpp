// Symbols that Open MPI's mpi.h declares and the standard does not have, except the objects of handles (objects.cpp).
#include "compat/convert.h"
#include "compat/entry.h"

extern "C" {

[[gnu::visibility("default")]] extern int* MPI_F_STATUS_IGNORE_ __asm__("MPI_F_STATUS_IGNORE");
int* MPI_F_STATUS_IGNORE_ = nullptr;
[[gnu::visibility("default")]] extern int* MPI_F_STATUSES_IGNORE_ __asm__("MPI_F_STATUSES_IGNORE");
int* MPI_F_STATUSES_IGNORE_ = nullptr;

/// Define MPI_DUP_FN, MPI_NULL_COPY_FN and MPI_NULL_DELETE_FN for each kind of object.
#define FUNCTIONS(KIND)                                                                                                   \
    [[gnu::visibility("default")]] int OMPI_C_MPI_##KIND##DUP_FN(void*, int, void*, void* value, void* copy, int* flag) { \
        *static_cast<void**>(copy) = value;                                                                               \
        *flag = 1;                                                                                                        \
        return MPI_SUCCESS;                                                                                               \
    }                                                                                                                     \
    [[gnu::visibility("default")]] int OMPI_C_MPI_##KIND##NULL_COPY_FN(void*, int, void*, void*, void*, int* flag) {      \
        *flag = 0;                                                                                                        \
        return MPI_SUCCESS;                                                                                               \
    }                                                                                                                     \
    [[gnu::visibility("default")]] int OMPI_C_MPI_##KIND##NULL_DELETE_FN(void*, int, void*, void*) { return MPI_SUCCESS; }
FUNCTIONS()
FUNCTIONS(COMM_)
FUNCTIONS(TYPE_)
FUNCTIONS(WIN_)

}  // extern "C"

namespace starling::compat {

extern "C" {

#define FORTRAN_HANDLE(Kind, There)                                                                                           \
    COMPAT_ENTRY(int, Kind##_c2f, (abi::There handle)) { return abi::Handles<MPI_##There>::number(in<MPI_##There>(handle)); } \
    COMPAT_ENTRY(abi::There, Kind##_f2c, (int handle)) { return out(in<MPI_##There>(handle)); }
FORTRAN_HANDLE(Comm, Comm)
FORTRAN_HANDLE(Errhandler, Errhandler)
FORTRAN_HANDLE(File, File)
FORTRAN_HANDLE(Group, Group)
FORTRAN_HANDLE(Info, Info)
FORTRAN_HANDLE(Message, Message)
FORTRAN_HANDLE(Op, Op)
FORTRAN_HANDLE(Request, Request)
FORTRAN_HANDLE(Session, Session)
FORTRAN_HANDLE(Type, Datatype)
FORTRAN_HANDLE(Win, Win)

}  // extern "C"

}  // namespace starling::compat
