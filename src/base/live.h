// Variables that a tool may write at any time (scope `live` in variables.def), by a thread that MPI need not know of: no lock keeps it
// from those who read them.
#pragma once

namespace starling {

/// The value of such a member of Config: a plain load.
template <class T>
T live(const T& member) {
    T value;
    __atomic_load(&member, &value, __ATOMIC_RELAXED);
    return value;
}

/// Gives it another.
template <class T>
void set_live(T& member, T value) {
    __atomic_store(&member, &value, __ATOMIC_RELAXED);
}

}  // namespace starling
