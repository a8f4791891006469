// Macros for the procedures that other MPIs compile into their module mpi_f08, with the names that gfortran makes for module procedures.
#pragma once

#include "mpi.h"

/// Defines a comparison of handles, which are integers or structures of one integer.
#define FORTRAN_COMPARISON(name, operator, symbol)                                       \
    [[gnu::visibility("default")]] int f_##name(const int*, const int*) __asm__(symbol); \
    int f_##name(const int* a, const int* b) { return *a operator* b; }

/// Defines MPI_COMM_NULL_COPY_FN and the other predefined callbacks of one kind.
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
