#include "mpi/pt2pt/partition_tags.h"

#include <iterator>
#include <new>

namespace starling::mpi {

uint32_t PartitionTags::draw(uint32_t count) {
    uint32_t at = next_;
    for (bool again = false;;) {
        if (count > kTags - at) {
            if (again) throw std::bad_alloc();
            again = true;
            at = 0;
            continue;
        }
        // Only two of the allocated ranges can overlap the new one: the last that begins at or before it, and the first that begins after
        // it.
        const auto behind = held_.upper_bound(at);
        if (behind != held_.begin()) {
            const auto [first, held] = *std::prev(behind);
            if (held > at - first) {
                at = first + held;
                continue;
            }
        }
        if (behind == held_.end() || behind->first - at >= count) break;
        at = behind->first + behind->second;
    }
    if (count > 0) held_.emplace(at, count);
    next_ = at + count;
    return at;
}

}  // namespace starling::mpi
