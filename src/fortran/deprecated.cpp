// Functions that MPI 3.0 has removed but programs still call; their address arguments are four-byte integers.
#include <vector>

#include "fortran/arguments.h"
#include "fortran/entry.h"

namespace starling::compat {

extern "C" {

FORTRAN_ENTRY(address, (const void* location, int* address, int* ierror)) {
    MPI_Aint found = 0;
    const int error = library.Get_address(place(location), &found);
    *address = static_cast<int>(found);
    give(ierror, error == MPI_SUCCESS && *address != found ? MPI_ERR_ARG : error);
}
FORTRAN_ENTRY(errhandler_get, (const int* comm, int* handler, int* ierror)) {
    give(ierror, library.Comm_get_errhandler(in<MPI_Comm>(*comm), made<MPI_Errhandler>(handler)));
}
FORTRAN_ENTRY(errhandler_set, (const int* comm, const int* handler, int* ierror)) {
    give(ierror, library.Comm_set_errhandler(in<MPI_Comm>(*comm), in<MPI_Errhandler>(*handler)));
}
FORTRAN_ENTRY(type_extent, (const int* type, int* extent, int* ierror)) {
    MPI_Aint lower = 0, found = 0;
    give(ierror, library.Type_get_extent(in<MPI_Datatype>(*type), &lower, &found));
    *extent = static_cast<int>(found);
}
FORTRAN_ENTRY(type_lb, (const int* type, int* lower, int* ierror)) {
    MPI_Aint found = 0, extent = 0;
    give(ierror, library.Type_get_extent(in<MPI_Datatype>(*type), &found, &extent));
    *lower = static_cast<int>(found);
}
FORTRAN_ENTRY(type_ub, (const int* type, int* upper, int* ierror)) {
    MPI_Aint lower = 0, extent = 0;
    give(ierror, library.Type_get_extent(in<MPI_Datatype>(*type), &lower, &extent));
    *upper = static_cast<int>(lower + extent);
}
FORTRAN_ENTRY(type_hvector,
              (const int* count, const int* length, const int* stride, const int* old_type, int* type, int* ierror)) {
    give(ierror, library.Type_create_hvector(*count, *length, *stride, in<MPI_Datatype>(*old_type), made<MPI_Datatype>(type)));
}
FORTRAN_ENTRY(type_hindexed,
              (const int* count, const int* lengths, const int* displacements, const int* old_type, int* type, int* ierror)) {
    const std::vector<MPI_Aint> wide(displacements, displacements + std::max(*count, 0));
    give(ierror,
         library.Type_create_hindexed(*count, lengths, wide.data(), in<MPI_Datatype>(*old_type), made<MPI_Datatype>(type)));
}
FORTRAN_ENTRY(type_struct,
              (const int* count, const int* lengths, const int* displacements, const int* types, int* type, int* ierror)) {
    const std::vector<MPI_Aint> wide(displacements, displacements + std::max(*count, 0));
    give(ierror,
         library.Type_create_struct(*count, lengths, wide.data(), list<MPI_Datatype>(types, *count), made<MPI_Datatype>(type)));
}

}  // extern "C"

}  // namespace starling::compat
