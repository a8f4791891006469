// Handles as the ABI has them: predefined ones are small numbers, all others are addresses of objects in type-stable pools.
#pragma once

#include <cstdint>

namespace starling {

/// Every object's address is at or above this limit; as integers (MPI_X_toint) the handles of objects begin here.
inline constexpr uintptr_t kHandleLimit = 0x1000;

/// Returns the live object of a handle that is not predefined, or nullptr for a predefined, freed or invalid handle.
template <class T, class Handle>
[[gnu::no_sanitize("vptr")]] inline T* object_behind(Handle handle) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < kHandleLimit || word % alignof(T) != 0) return nullptr;
    T* object = reinterpret_cast<T*>(handle);
    return object->magic == T::kMagic ? object : nullptr;
}

}  // namespace starling
