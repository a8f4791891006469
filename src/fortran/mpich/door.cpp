#include "fortran/sections/door.h"

#include "compat/symbols.h"

namespace starling::fortran {

const Door& door() {
    static const Door found{compat::find_in_library<decltype(Door::blocks)>("starling_blocks"),
                            compat::find_in_library<decltype(Door::lend)>("starling_lend")};
    return found;
}

}  // namespace starling::fortran
