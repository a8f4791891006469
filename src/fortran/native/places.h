// Starling's own common blocks, as in mpif.h and both modules (SENTINELS in tools/abi/fortran.py). Included by fortran/sentinels.h.
#pragma once

#include <cstddef>
#include <cstdint>

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

inline Meaning meaning_of(const void* place) {
    const size_t at = reinterpret_cast<uintptr_t>(place) - reinterpret_cast<uintptr_t>(&mpi_abi_places_);
    if (at >= sizeof(FortranPlaces)) [[likely]]
        return Meaning::none;
    if (at >= offsetof(FortranPlaces, status_ignore)) return Meaning::status_ignore;
    constexpr Meaning kMeanings[] = {Meaning::bottom,     Meaning::in_place,      Meaning::buffer_automatic,
                                     Meaning::unweighted, Meaning::weights_empty, Meaning::errcodes_ignore};
    return kMeanings[at / sizeof(int)];
}
inline bool is_argv_null(const char* argv) { return argv == &mpi_abi_texts_.argv_null; }
inline bool is_argvs_null(const char* argvs) { return argvs == &mpi_abi_texts_.argvs_null; }

}  // namespace starling::fortran
