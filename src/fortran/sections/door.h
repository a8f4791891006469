// Functions of the library that are not MPI's (base/fortran_hooks.h): linked, or looked up by a shim.
#pragma once

#include "base/fortran_hooks.h"

namespace starling::fortran {

struct Door {
    decltype(&starling_blocks) blocks;
    decltype(&starling_lend) lend;
};
const Door& door();

}  // namespace starling::fortran
