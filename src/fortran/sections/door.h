// The library's functions that are none of MPI's (base/fortran_hooks.h): linked, or found by a shim.
#pragma once

#include "base/fortran_hooks.h"

namespace starling::fortran {

struct Door {
    decltype(&starling_blocks) blocks;
    decltype(&starling_lend) lend;
};
const Door& door();

}  // namespace starling::fortran
