#include "fortran/sections/door.h"

namespace starling::fortran {

const SectionCalls& door() {
    static constexpr SectionCalls linked{starling_blocks, starling_lend};
    return linked;
}

}  // namespace starling::fortran
