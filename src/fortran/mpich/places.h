// MPICH's common blocks. Included by fortran/places.h.
#pragma once

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
[[gnu::visibility("default")]] extern MpichPlaces1 mpipriv1_;
[[gnu::visibility("default")]] extern MpichPlaces2 mpipriv2_;
[[gnu::visibility("default")]] extern MpichTexts mpiprivc_;
[[gnu::visibility("default")]] extern int mpifcmb5_, mpifcmb9_;
}

namespace starling::fortran {

inline Meaning meaning_of(const void* place) {
    if (place == &mpipriv1_.bottom) return Meaning::bottom;
    if (place == &mpipriv1_.in_place) return Meaning::in_place;
    if (place == &mpipriv1_.status_ignore || place == &mpipriv2_.statuses_ignore) return Meaning::status_ignore;
    if (place == &mpipriv2_.errcodes_ignore) return Meaning::errcodes_ignore;
    if (place == &mpifcmb5_) return Meaning::unweighted;
    if (place == &mpifcmb9_) return Meaning::weights_empty;
    return Meaning::none;
}
inline bool is_argv_null(const char* argv) { return argv == &mpiprivc_.argv_null; }
inline bool is_argvs_null(const char* argvs) { return argvs == &mpiprivc_.argvs_null; }

}  // namespace starling::fortran
