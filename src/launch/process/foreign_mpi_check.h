// Programs of another MPI: under Starling's mpiexec each of their processes would be alone, and nobody would say so.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace starling::launch {

/// What a library is by its file's name.
struct MpiLibrary {
    const char* mpi = "";               ///< "Open MPI"; empty: no MPI's
    const char* binary_interface = "";  ///< "mpich" or "openmpi", which have a shim, or "standard"; empty: another
};
MpiLibrary mpi_library(std::string_view file);

struct OtherLibrary {
    std::string name;                   ///< for a sentence: "Open MPI (libmpi.so.40)"; empty: there is none
    const char* binary_interface = "";  ///< whose shim could stand in for it (launch/process/compat.h); empty: nobody's
};

/// The other MPI library that the program in this file is linked with. None if the file is not for the loader to look at (a script, a
/// static program). What stands in between is not followed.
OtherLibrary other_library_of(const std::string& path);

/// The name of that which a running process, or one that it has started, has loaded: an interpreter's libraries are seen here only.
std::string other_library_in(pid_t pid);

}  // namespace starling::launch
