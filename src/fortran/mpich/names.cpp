// Procedures that only MPICH's module mpi has: MPI_SIZEOF by kind, with the names that gfortran makes for module procedures.
#include "fortran/arguments.h"

namespace starling::compat {

extern "C" {

#define SIZEOF(name, bytes)                                                                                              \
    [[gnu::visibility("default")]] void sizeof_##name(void*, int*, int*) __asm__("__mpi_sizeofs_MOD_mpi_sizeof_" #name); \
    void sizeof_##name(void*, int* size, int* ierror) {                                                                  \
        *size = bytes;                                                                                                   \
        give(ierror, MPI_SUCCESS);                                                                                       \
    }
#define SIZEOF_BOTH(name, bytes) SIZEOF(name, bytes) SIZEOF(name##v, bytes)  // defines the variants for scalars and for arrays
SIZEOF_BOTH(ch, 1)
SIZEOF_BOTH(l, 4)
SIZEOF_BOTH(i, 4)
SIZEOF_BOTH(i1, 1)
SIZEOF_BOTH(i2, 2)
SIZEOF_BOTH(i8, 8)
SIZEOF_BOTH(r, 4)
SIZEOF_BOTH(d, 8)
SIZEOF_BOTH(cx, 8)

}  // extern "C"

}  // namespace starling::compat
