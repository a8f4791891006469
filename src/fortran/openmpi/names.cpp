// What only Open MPI's modules name: MPI_SIZEOF by kind and rank, and what is compiled code in module mpi_f08.
#include "fortran/arguments.h"
#include "fortran/entry.h"

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

// Names as gfortran makes them of procedures in modules.
#define COMPARISON(kind)                                                                                                      \
    [[gnu::visibility("default")]] int kind##_eq(const int*, const int*) __asm__("__mpi_f08_types_MOD_ompi_" #kind "_op_eq"); \
    int kind##_eq(const int* a, const int* b) { return *a == *b; }                                                            \
    [[gnu::visibility("default")]] int kind##_ne(const int*, const int*) __asm__("__mpi_f08_types_MOD_ompi_" #kind "_op_ne"); \
    int kind##_ne(const int* a, const int* b) { return *a != *b; }
COMPARISON(comm)
COMPARISON(datatype)
COMPARISON(errhandler)
COMPARISON(file)
COMPARISON(group)
COMPARISON(info)
COMPARISON(message)
COMPARISON(op)
COMPARISON(request)
COMPARISON(win)

#define ATTRIBUTE(kind)                                                                                                       \
    [[gnu::visibility("default")]] void kind##_null_copy(int*, int*, MPI_Aint*, MPI_Aint*, MPI_Aint*, int*,                   \
                                                         int*) __asm__("__mpi_f08_callbacks_MOD_mpi_" #kind "_null_copy_fn"); \
    void kind##_null_copy(int*, int*, MPI_Aint*, MPI_Aint*, MPI_Aint*, int* flag, int* ierror) {                              \
        *flag = 0;                                                                                                            \
        *ierror = MPI_SUCCESS;                                                                                                \
    }                                                                                                                         \
    [[gnu::visibility("default")]] void kind##_dup(int*, int*, MPI_Aint*, MPI_Aint*, MPI_Aint*, int*,                         \
                                                   int*) __asm__("__mpi_f08_callbacks_MOD_mpi_" #kind "_dup_fn");             \
    void kind##_dup(int*, int*, MPI_Aint*, MPI_Aint* value, MPI_Aint* copied, int* flag, int* ierror) {                       \
        *copied = *value;                                                                                                     \
        *flag = 1;                                                                                                            \
        *ierror = MPI_SUCCESS;                                                                                                \
    }                                                                                                                         \
    [[gnu::visibility("default")]] void kind##_null_delete(                                                                   \
        int*, int*, MPI_Aint*, MPI_Aint*, int*) __asm__("__mpi_f08_callbacks_MOD_mpi_" #kind "_null_delete_fn");              \
    void kind##_null_delete(int*, int*, MPI_Aint*, MPI_Aint*, int* ierror) { *ierror = MPI_SUCCESS; }
ATTRIBUTE(comm)
ATTRIBUTE(type)
ATTRIBUTE(win)

}  // extern "C"

}  // namespace starling::compat
