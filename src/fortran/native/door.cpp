#include "fortran/sections/door.h"

namespace starling::fortran {

const Door& door() {
    static constexpr Door linked{starling_blocks, starling_lend};
    return linked;
}

}  // namespace starling::fortran
