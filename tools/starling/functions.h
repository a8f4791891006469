// The C functions of MPI 5.0 and of OpenSHMEM 1.5, and whether this build has them.
#pragma once

#include <span>

namespace starling {

struct Function {
    const char* name;
    const char* topic;
    const char* since;  ///< version of the standard
    bool built;
};

std::span<const Function> functions();
std::span<const Function> shmem_functions();

}  // namespace starling
