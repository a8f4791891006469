#include "launch/common/job_spec.h"

#include <algorithm>

namespace starling::launch {

uint32_t JobSpec::size() const {
    uint32_t size = 0;
    for (const Program& program : programs) size += program.count;
    return size;
}

uint32_t JobSpec::shown_universe_size(const uint32_t* inherited, uint32_t slots) const {
    if (inherited) return *inherited;
    if (universe_size == kInfiniteUniverse) return 0;
    return universe_size > 0 ? universe_size : std::max(size(), slots);
}

}  // namespace starling::launch
