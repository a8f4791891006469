// Procedures that MPICH compiles into its module mpi_f08: comparisons, statuses, sizes, and predefined procedures that a program passes by
// name.
#include "fortran/arguments.h"
#include "fortran/entry.h"
#include "fortran/modern_names.h"

namespace starling::compat {

extern "C" {

// Comparisons of handles; either side may be a handle of the older interfaces.
#define COMPARED(kind)                                                                                    \
    FORTRAN_COMPARISON(kind##_eq, ==, "__mpi_f08_types_MOD_mpi_" #kind "_eq")                             \
    FORTRAN_COMPARISON(kind##_ne, !=, "__mpi_f08_types_MOD_mpi_" #kind "_neq")                            \
    FORTRAN_ALIAS("__mpi_f08_types_MOD_mpi_" #kind "_f08_eq_f", "__mpi_f08_types_MOD_mpi_" #kind "_eq")   \
    FORTRAN_ALIAS("__mpi_f08_types_MOD_mpi_" #kind "_f_eq_f08", "__mpi_f08_types_MOD_mpi_" #kind "_eq")   \
    FORTRAN_ALIAS("__mpi_f08_types_MOD_mpi_" #kind "_f08_neq_f", "__mpi_f08_types_MOD_mpi_" #kind "_neq") \
    FORTRAN_ALIAS("__mpi_f08_types_MOD_mpi_" #kind "_f_neq_f08", "__mpi_f08_types_MOD_mpi_" #kind "_neq")
COMPARED(comm)
COMPARED(datatype)
COMPARED(errhandler)
COMPARED(file)
COMPARED(group)
COMPARED(info)
COMPARED(message)
COMPARED(op)
COMPARED(request)
COMPARED(session)
COMPARED(win)

FORTRAN_PREDEFINED_CALLBACKS(comm)
FORTRAN_PREDEFINED_CALLBACKS(type)
FORTRAN_PREDEFINED_CALLBACKS(win)

#define MODULE(returns, name, parameters)                                                                  \
    [[gnu::visibility("default")]] returns module_##name parameters __asm__("__mpi_f08_types_MOD_" #name); \
    returns module_##name parameters

MODULE(void, mpi_status_f2f08, (const int* from, int* to, int* ierror)) {
    std::memcpy(to, from, sizeof(abi::Status));
    give(ierror, MPI_SUCCESS);
}
MODULE(void, mpi_status_f082f, (const int* from, int* to, int* ierror)) {
    std::memcpy(to, from, sizeof(abi::Status));
    give(ierror, MPI_SUCCESS);
}

#define SIZE_OF(name, bytes)                                                 \
    MODULE(void, mpi_sizeof_##name, (const void*, int* size, int* ierror)) { \
        *size = bytes;                                                       \
        give(ierror, MPI_SUCCESS);                                           \
    }
SIZE_OF(character, 1)
SIZE_OF(logical, 4)
SIZE_OF(xint8, 1)
SIZE_OF(xint16, 2)
SIZE_OF(xint32, 4)
SIZE_OF(xint64, 8)
SIZE_OF(xreal32, 4)
SIZE_OF(xreal64, 8)
SIZE_OF(xreal128, 16)
SIZE_OF(xcomplex32, 8)
SIZE_OF(xcomplex64, 16)
SIZE_OF(xcomplex128, 32)

// User-defined data representations are not implemented.
#define CONVERSION(name)                                                                                          \
    [[gnu::visibility("default")]] void module_##name() __asm__("__mpi_f08_callbacks_MOD_mpi_conversion_" #name); \
    void module_##name() {}
CONVERSION(fn_null)
CONVERSION(fn_null_c)

#define SYNC(symbol, name)                                                              \
    [[gnu::visibility("default")]] void name(const void*, int* ierror) __asm__(symbol); \
    void name(const void*, int* ierror) { give(ierror, MPI_SUCCESS); }
SYNC("mpi_f_sync_reg_f08ts_", sync_reg)
SYNC("pmpir_f_sync_reg_f08ts_", sync_reg_too)

}  // extern "C"

}  // namespace starling::compat
