// Functions that MPI 3.0 has removed, for programs that were compiled with an older version.
#include "compat/convert.h"
#include "compat/entry.h"

namespace starling::compat {

extern "C" {

COMPAT_ENTRY(int, Address, (const void* location, MPI_Aint* address)) {
    return error_out(library.Get_address(location, address));
}
COMPAT_ENTRY(int, Errhandler_create, (abi::Comm_errhandler_function * function, abi::Errhandler* errhandler)) {
    return error_out(library.Comm_create_errhandler(reinterpret_cast<MPI_Comm_errhandler_function*>(function),
                                                    made<MPI_Errhandler>(errhandler)));
}
COMPAT_ENTRY(int, Errhandler_get, (abi::Comm comm, abi::Errhandler* errhandler)) {
    return error_out(library.Comm_get_errhandler(in<MPI_Comm>(comm), made<MPI_Errhandler>(errhandler)));
}
COMPAT_ENTRY(int, Errhandler_set, (abi::Comm comm, abi::Errhandler errhandler)) {
    return error_out(library.Comm_set_errhandler(in<MPI_Comm>(comm), in<MPI_Errhandler>(errhandler)));
}
COMPAT_ENTRY(int, Type_extent, (abi::Datatype type, MPI_Aint* extent)) {
    MPI_Aint lower = 0;
    return error_out(library.Type_get_extent(in<MPI_Datatype>(type), &lower, extent));
}
COMPAT_ENTRY(int, Type_lb, (abi::Datatype type, MPI_Aint* lower)) {
    MPI_Aint extent = 0;
    return error_out(library.Type_get_extent(in<MPI_Datatype>(type), lower, &extent));
}
COMPAT_ENTRY(int, Type_ub, (abi::Datatype type, MPI_Aint* upper)) {
    MPI_Aint lower = 0, extent = 0;
    const int error = library.Type_get_extent(in<MPI_Datatype>(type), &lower, &extent);
    if (error == MPI_SUCCESS) *upper = lower + extent;
    return error_out(error);
}
COMPAT_ENTRY(int, Type_hvector, (int count, int length, MPI_Aint stride, abi::Datatype old_type, abi::Datatype* type)) {
    return error_out(library.Type_create_hvector(count, length, stride, in<MPI_Datatype>(old_type), made<MPI_Datatype>(type)));
}
COMPAT_ENTRY(int, Type_hindexed,
             (int count, const int* lengths, const MPI_Aint* displacements, abi::Datatype old_type, abi::Datatype* type)) {
    return error_out(
        library.Type_create_hindexed(count, lengths, displacements, in<MPI_Datatype>(old_type), made<MPI_Datatype>(type)));
}
COMPAT_ENTRY(int, Type_struct,
             (int count, const int* lengths, const MPI_Aint* displacements, const abi::Datatype* types, abi::Datatype* type)) {
    return error_out(
        library.Type_create_struct(count, lengths, displacements, list<MPI_Datatype>(types, count), made<MPI_Datatype>(type)));
}

}  // extern "C"

}  // namespace starling::compat
