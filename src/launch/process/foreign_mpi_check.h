// Detects programs that are linked with another MPI. Under Starling's mpiexec each of their processes would run as a singleton, without any
// error message.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>

#include "launch/process/elf_file.h"

namespace starling::launch {

/// Delay from the start of a job's processes to the first check of the libraries that they have loaded.
inline constexpr std::chrono::milliseconds kFirstLook{50};

/// Identifies an MPI library by its file name.
struct MpiLibrary {
    const char* mpi = "";               ///< name such as "Open MPI"; empty: the file is not an MPI library
    const char* binary_interface = "";  ///< "mpich" or "openmpi", which have a shim, or "standard"; empty: another
};
MpiLibrary mpi_library(std::string_view file);

struct OtherLibrary {
    std::string name;                   ///< name for a sentence, "Open MPI (libmpi.so.40)"; empty: no other library
    const char* binary_interface = "";  ///< shim that can replace the library (launch/process/compat.h); empty: none
};

/// Returns the other MPI library that this program file is linked with. Returns none if the loader does not handle the file (a script, a
/// static program). Checks direct dependencies only.
OtherLibrary other_library_of(const ElfFile& program);

/// Returns the name of another MPI's library that a running process or one of its children has loaded. Libraries of an interpreter are
/// found only here.
std::string other_library_in(pid_t pid);

}  // namespace starling::launch
