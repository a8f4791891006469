// Access to variables that a tool may write at any time (scope `live` in variables.def), from a thread that MPI does not know about. No
// lock protects the readers, so the reader and the writer use relaxed atomics.
#pragma once

namespace starling {

/// Returns the value of a live member of Config: a plain load.
template <class T>
T live(const T& member) {
    T value;
    __atomic_load(&member, &value, __ATOMIC_RELAXED);
    return value;
}

/// Sets a live member of Config.
template <class T>
void set_live(T& member, T value) {
    __atomic_store(&member, &value, __ATOMIC_RELAXED);
}

}  // namespace starling
