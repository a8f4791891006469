// Handles as integers (MPI_X_toint, MPI_X_fromint): the ABI's value for predefined handles, otherwise kHandleLimit plus the object's index
// in its pool.
#pragma once

#include <cstdint>

#include "base/handle.h"

namespace starling::mpi {

inline constexpr int kFirstHandleInt = kHandleLimit;

/// Returns the integer of a handle. `object` is the object behind it, nullptr if the handle is null or invalid.
template <class Handle, class Object>
int to_int(Handle handle, const Object* object) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < kFirstHandleInt) return static_cast<int>(word);
    return object ? kFirstHandleInt + static_cast<int>(object->pool_index) : 0;
}

/// Returns the handle of an integer, `null` if the integer is not that of a handle. `at` finds a live object by its pool index.
template <class Handle, class Object>
Handle from_int(int value, Object* (*at)(uint32_t), Handle null) {
    if (value >= 0 && value < kFirstHandleInt) return reinterpret_cast<Handle>(static_cast<uintptr_t>(value));
    Object* object = value < 0 ? nullptr : at(static_cast<uint32_t>(value - kFirstHandleInt));
    return object ? to_handle(object) : null;  // to_handle() of the object's namespace is called
}

}  // namespace starling::mpi
