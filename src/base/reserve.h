// Reserving room in containers, so that adding the next element cannot fail for lack of memory.
#pragma once

#include <algorithm>

namespace starling {

/// Reserves room for `more` elements, with the growth of push_back(). Steps that belong together then cannot fail halfway: all that may
/// throw std::bad_alloc precedes the first of them. For std::vector.
template <class Vector>
void make_room(Vector& vector, typename Vector::size_type more = 1) {
    const auto wanted = vector.size() + more;
    if (wanted > vector.capacity()) vector.reserve(std::max(wanted, 2 * vector.capacity()));
}

}  // namespace starling
