// Procedures that only Open MPI's modules have: MPI_SIZEOF by kind and rank, and those compiled into module mpi_f08.
#include "fortran/arguments.h"
#include "fortran/entry.h"
#include "fortran/modern_names.h"

namespace starling::compat {

extern "C" {

#define ONE(symbol, of)            \
    FORTRAN_ALIAS(#symbol "_", of) \
    FORTRAN_ALIAS("p" #symbol "_", of)
#define SIZEOF(name, bytes)                                                                      \
    [[gnu::visibility("hidden"), gnu::used]] void sizeof_##name(void*, int* size, int* ierror) { \
        *size = bytes;                                                                           \
        give(ierror, MPI_SUCCESS);                                                               \
    }                                                                                            \
    ONE(mpi_sizeof_##name##_scalar, "sizeof_" #name)                                             \
    ONE(mpi_sizeof_##name##_r1, "sizeof_" #name)                                                 \
    ONE(mpi_sizeof_##name##_r2, "sizeof_" #name)                                                 \
    ONE(mpi_sizeof_##name##_r3, "sizeof_" #name)                                                 \
    ONE(mpi_sizeof_##name##_r4, "sizeof_" #name)                                                 \
    ONE(mpi_sizeof_##name##_r5, "sizeof_" #name)                                                 \
    ONE(mpi_sizeof_##name##_r6, "sizeof_" #name)                                                 \
    ONE(mpi_sizeof_##name##_r7, "sizeof_" #name)
SIZEOF(character, 1)
SIZEOF(logical, 4)
SIZEOF(int8, 1)
SIZEOF(int16, 2)
SIZEOF(int32, 4)
SIZEOF(int64, 8)
SIZEOF(real32, 4)
SIZEOF(real64, 8)
SIZEOF(real128, 16)
SIZEOF(complex32, 8)
SIZEOF(complex64, 16)
SIZEOF(complex128, 32)

#define COMPARED(kind)                                                            \
    FORTRAN_COMPARISON(kind##_eq, ==, "__mpi_f08_types_MOD_ompi_" #kind "_op_eq") \
    FORTRAN_COMPARISON(kind##_ne, !=, "__mpi_f08_types_MOD_ompi_" #kind "_op_ne")
COMPARED(comm)
COMPARED(datatype)
COMPARED(errhandler)
COMPARED(file)
COMPARED(group)
COMPARED(info)
COMPARED(message)
COMPARED(op)
COMPARED(request)
COMPARED(win)

FORTRAN_PREDEFINED_CALLBACKS(comm)
FORTRAN_PREDEFINED_CALLBACKS(type)
FORTRAN_PREDEFINED_CALLBACKS(win)

}  // extern "C"

}  // namespace starling::compat
