// Places whose address means something (MPI 5.0 section 2.5.4): variables of common blocks, which a program that names them has in its own memory.
#pragma once

#include <cstdint>

/// As the common block of mpif.h and of both modules has them (SENTINELS in tools/abi/fortran.py).
struct FortranPlaces {
    int bottom, in_place, buffer_automatic, unweighted, weights_empty, errcodes_ignore, status_ignore[8], statuses_ignore[8];
};
struct FortranTexts {
    char argv_null, argvs_null;
};

extern "C" {
[[gnu::visibility("default")]] extern FortranPlaces mpi_abi_places_;
[[gnu::visibility("default")]] extern FortranTexts mpi_abi_texts_;
}

namespace starling::fortran {

/// Whether `place` is one of mpi_abi_places_.
inline bool is_sentinel(const void* place) {
    return reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(&mpi_abi_places_) < sizeof(FortranPlaces);
}

}  // namespace starling::fortran
