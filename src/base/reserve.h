// Containers whose next element must not fail for want of memory.
#pragma once

#include <algorithm>

namespace starling {

/// Room for `more` elements, growing as push_back() would. So what is to be done together can be: first all that may throw
/// std::bad_alloc, then the rest. For std::vector.
template <class Vector>
void make_room(Vector& vector, typename Vector::size_type more = 1) {
    const auto wanted = vector.size() + more;
    if (wanted > vector.capacity()) vector.reserve(std::max(wanted, 2 * vector.capacity()));
}

}  // namespace starling
