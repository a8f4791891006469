// Handles as integers (MPI_X_toint, MPI_X_fromint): the ABI's value for predefined handles, else kHandleLimit and
// the object's place in its pool.
#pragma once

#include <cstdint>

#include "base/handle.h"

namespace starling::mpi {

inline constexpr int kFirstHandleInt = kHandleLimit;

/// `object` is what is behind the handle, nullptr if it is null or not valid.
template <class Handle, class Object>
int to_int(Handle handle, const Object* object) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < kFirstHandleInt) return static_cast<int>(word);
    return object ? kFirstHandleInt + static_cast<int>(object->pool_index) : 0;
}

/// `at` finds a live object by its place. Gives `null` for what is no handle.
template <class Handle, class Object>
Handle from_int(int value, Object* (*at)(uint32_t), Handle null) {
    if (value >= 0 && value < kFirstHandleInt) return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));
    Object* object = value < 0 ? nullptr : at(static_cast<uint32_t>(value - kFirstHandleInt));
    return object ? to_handle(object) : null;  // found in the object's namespace
}

}  // namespace starling::mpi
