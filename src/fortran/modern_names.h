// What is compiled code in modules mpi_f08 of other MPIs, and so has names as gfortran makes them of procedures in modules.
#pragma once

#include "mpi.h"

/// Of handles, which are structures of one integer, or one integer.
#define FORTRAN_COMPARISON(name, operator, symbol)                                       \
    [[gnu::visibility("default")]] int f_##name(const int*, const int*) __asm__(symbol); \
    int f_##name(const int* a, const int* b) { return *a operator* b; }

/// MPI_COMM_NULL_COPY_FN and so on.
#define FORTRAN_PREDEFINED_CALLBACKS(kind)                                                                                    \
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
