// Open MPI's common blocks, one per special variable. Included by fortran/sentinels.h.
#pragma once

extern "C" {
[[gnu::visibility("default")]] extern int mpi_fortran_bottom_;
[[gnu::visibility("default")]] extern int mpi_fortran_in_place_;
[[gnu::visibility("default")]] extern int mpi_fortran_errcodes_ignore_;
[[gnu::visibility("default")]] extern int mpi_fortran_status_ignore_[6];
[[gnu::visibility("default")]] extern int mpi_fortran_statuses_ignore_[6];
[[gnu::visibility("default")]] extern int mpi_fortran_unweighted_;
[[gnu::visibility("default")]] extern int mpi_fortran_weights_empty_;
[[gnu::visibility("default")]] extern char mpi_fortran_argv_null_;
[[gnu::visibility("default")]] extern char mpi_fortran_argvs_null_;
}

namespace starling::fortran {

inline Meaning meaning_of(const void* place) {
    if (place == &mpi_fortran_bottom_) return Meaning::bottom;
    if (place == &mpi_fortran_in_place_) return Meaning::in_place;
    if (place == &mpi_fortran_errcodes_ignore_) return Meaning::errcodes_ignore;
    if (place == &mpi_fortran_status_ignore_) return Meaning::status_ignore;
    if (place == &mpi_fortran_statuses_ignore_) return Meaning::status_ignore;
    if (place == &mpi_fortran_unweighted_) return Meaning::unweighted;
    if (place == &mpi_fortran_weights_empty_) return Meaning::weights_empty;
    return Meaning::none;
}
inline bool is_argv_null(const char* argv) { return argv == &mpi_fortran_argv_null_; }
inline bool is_argvs_null(const char* argvs) { return argvs == &mpi_fortran_argvs_null_; }

}  // namespace starling::fortran
