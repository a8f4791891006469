// Loads the library once for each simulated process. The loader treats copies of one file as different libraries. Each copy has separate
// variables, including thread-local and function-local ones, so simulated processes share only what real ones share.
#pragma once

#include <mpi-ext.h>
#include <starling_keep.h>

#include <string>

#include "program_copy.h"
#include "shmem/runtime_abi.h"

namespace starling::simulation {

/// The functions of one copy, without their prefix.
struct Library {
#define FUNCTION(name) decltype(&MPI_##name) name;
#include "functions.def"
#undef FUNCTION
    decltype(&MPIX_Phase_begin) Phase_begin;
    decltype(&MPIX_Comm_replace) Comm_replace;
    decltype(&MPIX_Win_revoke) Win_revoke;
    decltype(&MPIX_Win_is_revoked) Win_is_revoked;
    decltype(&MPIX_File_revoke) File_revoke;
// The functions below OpenSHMEM's entry points. The entry points themselves are in another library, which has no state to separate.
#define FUNCTION(name) decltype(&shmem::starling_shmem_##name) shmem_##name;
#include "functions_shmem.def"
#undef FUNCTION
// The functions of the copy of libstarling_keep that is bound to this copy.
#define FUNCTION(name) decltype(&starling_keep_##name) keep_##name;
#include "functions_keep.def"
#undef FUNCTION
    ProgramCopy program;  ///< this copy's program
};

/// Loads copy number `index` of this library file, and with it a copy of this program, whose MPI functions are those of the library's copy.
/// Without a program, ranks call the functions above. A copy stays loaded; the same number returns the same copy.
const Library& library(const std::string& file, size_t index, const std::string& program = {});

/// Makes the copies that are loaded later spend time between two polls (simulated_pause()); otherwise they continue at once.
void price_pauses();

}  // namespace starling::simulation
