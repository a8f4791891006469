// Runs programs that are built for another MPI: a shim with that MPI's binary interface is put into the loader's search path before the
// other MPI's library (docs/compatibility.md).
#pragma once

#include <string>
#include <string_view>

#include "launch/process/foreign_mpi_check.h"
#include "launch/process/rank_variables.h"

namespace starling::launch {

/// Returns whether `word` is a valid value of STARLING_COMPAT.
bool is_compat(std::string_view word);

/// Returns the folder of Starling's own libraries, for a program that is linked with them but has no RPATH or RUNPATH, as Rust's cargo
/// links. Returns an empty string if the program does not need it.
std::string own_library_path(const std::string& program);

/// The shims that a program needs for `setting`, a value of STARLING_COMPAT.
struct Shims {
    std::string library_path;  ///< folder to put in front of LD_LIBRARY_PATH; empty: no shim
    std::string problem;       ///< an error as a sentence; empty: none
    ForeignNames names;        ///< variables of the other MPI's launcher, which the program may read
};
Shims choose_shims(std::string_view setting, const OtherLibrary& linked_with);

}  // namespace starling::launch
