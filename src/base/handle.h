// Handles as the ABI has them: predefined ones are small numbers, all others are addresses of objects in type-stable pools.
#pragma once

#include <cstdint>

namespace starling {

/// No object's address is below it; as integers (MPI_X_toint) the handles of objects begin here.
inline constexpr uintptr_t kHandleLimit = 0x1000;

/// The live object behind a handle that is not predefined; nullptr for all else: predefined, freed or never valid ones.
template <class T, class Handle>
[[gnu::no_sanitize("vptr")]] inline T* object_behind(Handle handle) {
    const auto word = reinterpret_cast<uintptr_t>(handle);
    if (word < kHandleLimit || word % alignof(T) != 0) return nullptr;
    T* object = reinterpret_cast<T*>(handle);
    return object->magic == T::kMagic ? object : nullptr;
}

}  // namespace starling
