// Declares functions of the library that are not part of MPI (base/fortran_hooks.h). They are linked, or looked up at run time in a shim.
#pragma once

#include "base/fortran_hooks.h"

namespace starling::fortran {

struct SectionCalls {
    decltype(&starling_blocks) blocks;
    decltype(&starling_lend) lend;
};
const SectionCalls& door();

}  // namespace starling::fortran
