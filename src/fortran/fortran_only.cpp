// Functions that exist only in Fortran: sizes, comparisons of handles, conversions between statuses of mpi_f08 and of the older interfaces.
#include "fortran/arguments.h"
#include "fortran/entry.h"

namespace starling::compat {

extern "C" {

FORTRAN_ENTRY(f_sync_reg, (void*)) {}
// MPI_F_SYNC_REG of module mpi_f08, whose argument is a descriptor. It does nothing.
[[gnu::visibility("default")]] void f_sync_reg_of_descriptor(void*) __asm__("mpi_f_sync_reg_f08ts");
void f_sync_reg_of_descriptor(void*) {}
FORTRAN_ONLY(mpi_status_f2f08_f08, (const int* from, int* to, int* ierror)) {
    std::memcpy(to, from, sizeof(abi::Status));
    give(ierror, MPI_SUCCESS);
}
FORTRAN_ONLY(mpi_status_f082f_f08, (const int* from, int* to, int* ierror)) {
    std::memcpy(to, from, sizeof(abi::Status));
    give(ierror, MPI_SUCCESS);
}
#define SIZE_OF(name, bytes)                                           \
    FORTRAN_ONLY(mpi_sizeof_##name, (void*, int* size, int* ierror)) { \
        *size = bytes;                                                 \
        give(ierror, MPI_SUCCESS);                                     \
    }
SIZE_OF(integer1, 1)
SIZE_OF(integer2, 2)
SIZE_OF(integer4, 4)
SIZE_OF(integer8, 8)
SIZE_OF(logical1, 1)
SIZE_OF(logical2, 2)
SIZE_OF(logical4, 4)
SIZE_OF(logical8, 8)
SIZE_OF(real4, 4)
SIZE_OF(real8, 8)
SIZE_OF(complex8, 8)
SIZE_OF(complex16, 16)
SIZE_OF(character1, 1)

#define COMPARISONS(name)                                                                                          \
    [[gnu::visibility("default")]] int f_##name##_eq(const int* a, const int* b) __asm__("mpi_" #name "_eq_f08_"); \
    int f_##name##_eq(const int* a, const int* b) { return *a == *b; }                                             \
    [[gnu::visibility("default")]] int f_##name##_ne(const int* a, const int* b) __asm__("mpi_" #name "_ne_f08_"); \
    int f_##name##_ne(const int* a, const int* b) { return *a != *b; }
COMPARISONS(comm)
COMPARISONS(group)
COMPARISONS(datatype)
COMPARISONS(op)
COMPARISONS(errhandler)
COMPARISONS(info)
COMPARISONS(request)
COMPARISONS(message)
COMPARISONS(session)
COMPARISONS(win)
COMPARISONS(file)

}  // extern "C"

}  // namespace starling::compat
