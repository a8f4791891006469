#include "base/shim_hooks.h"

#include "base/state.h"

namespace starling {
STARLING_STATE const Foreign* foreign = nullptr;
}

extern "C" [[gnu::visibility("default")]] bool starling_set_foreign(const starling::Foreign* with) {
    if (starling::foreign) return false;
    starling::foreign = with;
    return true;
}
