// Reserving room in containers, so that adding the next element cannot fail for lack of memory.
#pragma once

#include <algorithm>

namespace starling {

/// Reserves room for `more` elements, with the growth of push_back(). With it, steps that belong together cannot fail halfway: first
/// everything that may throw std::bad_alloc, then the rest. For std::vector.
template <class Vector>
void make_room(Vector& vector, typename Vector::size_type more = 1) {
    const auto wanted = vector.size() + more;
    if (wanted > vector.capacity()) vector.reserve(std::max(wanted, 2 * vector.capacity()));
}

}  // namespace starling
