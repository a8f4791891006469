// MPICH's common blocks, and variables of its module mpi_f08. Included by fortran/sentinels.h.
#pragma once

#include <cstdint>

extern "C" {
struct MpichPlaces1 {
    int bottom, in_place, status_ignore[5];
};
struct MpichPlaces2 {
    int statuses_ignore[5], errcodes_ignore;
};
struct MpichTexts {
    char argvs_null, argv_null;
};
struct MpichStatus {
    int words[5];
};
#define MPICH_PLACE [[gnu::visibility("default")]] extern
MPICH_PLACE MpichPlaces1 mpipriv1_;
MPICH_PLACE MpichPlaces2 mpipriv2_;
MPICH_PLACE MpichTexts mpiprivc_;
MPICH_PLACE int mpifcmb5_, mpifcmb9_;
MPICH_PLACE int mpich_bottom __asm__("MPIR_F08_MPI_BOTTOM");
MPICH_PLACE int mpich_in_place __asm__("MPIR_F08_MPI_IN_PLACE");
MPICH_PLACE MpichStatus mpich_status_ignore __asm__("MPIR_F08_MPI_STATUS_IGNORE_OBJ");
MPICH_PLACE MpichStatus mpich_statuses_ignore __asm__("MPIR_F08_MPI_STATUSES_IGNORE_OBJ");
MPICH_PLACE int mpich_unweighted __asm__("__mpi_f08_link_constants_MOD_mpi_unweighted");
MPICH_PLACE int mpich_weights_empty __asm__("__mpi_f08_link_constants_MOD_mpi_weights_empty");
MPICH_PLACE int mpich_errcodes_ignore __asm__("__mpi_f08_link_constants_MOD_mpi_errcodes_ignore");
MPICH_PLACE char mpich_argv_null __asm__("__mpi_f08_link_constants_MOD_mpi_argv_null");
MPICH_PLACE char mpich_argvs_null __asm__("__mpi_f08_link_constants_MOD_mpi_argvs_null");
}

namespace starling::fortran {

/// The address range of the special variables. It usually contains no buffer, so one range check decides most cases. A program that names
/// such a variable may have a copy of it in its own memory.
struct PlacesSpan {
    uintptr_t first, last;
};
extern PlacesSpan places_span;
Meaning meaning_within_span(const void* place);

inline Meaning meaning_of(const void* place) {
    const auto at = reinterpret_cast<uintptr_t>(place);
    if (at - places_span.first > places_span.last - places_span.first) [[likely]]
        return Meaning::none;
    return meaning_within_span(place);
}
inline bool is_argv_null(const char* argv) { return argv == &mpiprivc_.argv_null || argv == &mpich_argv_null; }
inline bool is_argvs_null(const char* argvs) { return argvs == &mpiprivc_.argvs_null || argvs == &mpich_argvs_null; }

}  // namespace starling::fortran
