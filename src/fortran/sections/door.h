// Functions of the library that are not MPI's (base/fortran_hooks.h): linked, or looked up by a shim.
#pragma once

#include "base/fortran_hooks.h"

namespace starling::fortran {

struct SectionCalls {
    decltype(&starling_blocks) blocks;
    decltype(&starling_lend) lend;
};
const SectionCalls& door();

}  // namespace starling::fortran
