#include "fortran/sections/door.h"

#include "compat/symbols.h"

namespace starling::fortran {

const SectionCalls& door() {
    static const SectionCalls found{compat::find_in_library<decltype(SectionCalls::blocks)>("starling_blocks"),
                                    compat::find_in_library<decltype(SectionCalls::lend)>("starling_lend")};
    return found;
}

}  // namespace starling::fortran
