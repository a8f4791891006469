#include "profile/waits.h"

#include <algorithm>

#include "base/state.h"

namespace starling::profile {

namespace {
STARLING_STATE uint64_t waited[kCauses] = {};
}

void add_wait(Cause cause, uint64_t ns) { waited[static_cast<size_t>(cause)] += ns; }

const uint64_t* waits() { return waited; }

void clear_waits() { std::fill_n(waited, kCauses, 0); }

}  // namespace starling::profile
