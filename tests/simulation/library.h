// The library, once for each simulated process. Copies of one file are different libraries to the loader: each has all
// variables of its own, those of its threads and functions too, so processes share nothing but what they share for real.
#pragma once

#include <mpi-ext.h>

#include <memory>
#include <string>

#include "shmem/runtime_abi.h"

namespace starling::simulation {

/// The functions of one copy, without their prefix.
struct Library {
#define FUNCTION(name) decltype(&MPI_##name) name;
#include "functions.def"
#undef FUNCTION
    decltype(&MPIX_Phase_begin) Phase_begin;
// What OpenSHMEM's entry points call: these are in a library of their own, of which there is nothing to share or not.
#define FUNCTION(name) decltype(&shmem::starling_shmem_##name) shmem_##name;
#include "functions_shmem.def"
#undef FUNCTION
};

/// Loads copy number `index` of the library in this file, which stays; the same again for the same number.
const Library& library(const std::string& file, size_t index);

}  // namespace starling::simulation
