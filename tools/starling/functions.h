// The C functions of MPI 5.0 and of OpenSHMEM 1.5, and whether this build has them.
#pragma once

#include <span>

namespace starling {

struct Function {
    const char* name;
    const char* topic;
    const char* since;  ///< first version of the standard with the function
    bool built;
};

std::span<const Function> functions();
std::span<const Function> shmem_functions();

}  // namespace starling
