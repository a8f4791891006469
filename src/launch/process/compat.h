// Runs programs that are built for another MPI: a shim with that MPI's binary interface is put into the loader's search path before the
// other MPI's library (docs/compatibility.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "launch/process/elf_file.h"
#include "launch/process/foreign_mpi_check.h"
#include "launch/process/rank_variables.h"

namespace starling::launch {

/// Returns whether `word` is a valid value of STARLING_COMPAT.
bool is_compat(std::string_view word);

/// Returns the path of `name` in the folder of Starling's libraries beside this program; empty: there is none.
std::string find_library(const std::string& name);
/// Returns the folder of Starling's libraries beside this program; empty: there is none.
std::string library_folder();

/// How the loader replaces libraries wherever it finds them (src/compat/redirect).
struct Redirection {
    std::string audit;  ///< the audit library, for LD_AUDIT; empty: Starling's libraries are missing, and none can be replaced
    std::string libraries;  ///< the folder with the replacements, for kLibrariesVariable
};
Redirection find_redirection();

/// Which libmpi_abi.so.1 the loader takes for a program that is linked with it.
enum class OwnLibrary : uint8_t {
    not_needed,  ///< the program is not linked with it
    found,       ///< one of Starling's
    foreign,     ///< another vendor's, which has the same name and interface
    absent,      ///< none on the program's own path or in LD_LIBRARY_PATH, as Rust's cargo links
};
/// `search_path`: the value of LD_LIBRARY_PATH for the program.
OwnLibrary find_own_library(const ElfFile& program, std::string_view search_path);

/// Returns whether a file is Starling's library or a shim, by its content.
bool is_own_library(const ElfFile& file);

/// The shims that a program needs for `setting`, a value of STARLING_COMPAT.
struct Shims {
    std::string library_path;  ///< folder to put in front of LD_LIBRARY_PATH; empty: no shim
    std::string problem;       ///< an error as a sentence; empty: none
    ForeignNames names;        ///< variables of the other MPI's launcher, which the program may read
};
Shims choose_shims(std::string_view setting, const OtherLibrary& linked_with);

}  // namespace starling::launch
