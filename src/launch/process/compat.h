// Programs that are built for another MPI: a shim with that one's binary interface is put in front of its library, where the loader
// looks first (docs/compatibility.md).
#pragma once

#include <string>
#include <string_view>

#include "launch/process/foreign_mpi_check.h"

namespace starling::launch {

/// Whether STARLING_COMPAT can be this.
bool is_compat(std::string_view word);

/// The folder of Starling's own libraries, for a program that is linked with them but does not say where they are, as Rust's cargo
/// links; empty: it needs none.
std::string own_library_path(const std::string& program);

/// What `setting`, a value of STARLING_COMPAT, means for a program.
struct Shims {
    std::string library_path;  ///< goes in front of LD_LIBRARY_PATH; empty: nothing
    std::string problem;       ///< a sentence; empty: none
};
Shims choose_shims(std::string_view setting, const OtherLibrary& linked_with);

}  // namespace starling::launch
