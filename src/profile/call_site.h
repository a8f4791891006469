// Finds the place in the program that has called the library. Frames of wrappers between the two are stepped over: the shims of
// src/compat, Fortran's procedures, and tools that define MPI's functions themselves (PMPI). A call by mpi4py is attributed to the line of
// the Python program.
#pragma once

#include <atomic>
#include <cstddef>

namespace starling::profile {

/// Returns the place in the program that called the library: the site of the watched collective call if there is one, otherwise found on
/// the stack. It is a return address, or a label, which is_label() recognizes. Returns null if there is none.
const void* call_site();

/// Places of the program itself that have called a function: those that need no walk up the stack. Indexed by a hash of the address.
inline constexpr size_t kKnownSites = 64;
extern std::atomic<const void*> known_sites[kKnownSites];

inline std::atomic<const void*>& known_site(const void* address) {
    const auto place = reinterpret_cast<size_t>(address);
    return known_sites[(place ^ place >> 6) % kKnownSites];
}

/// Does what program_site() does, for a return address that may be in a wrapper.
const void* program_site_slowly(const void* caller);

/// Returns the place in the program from which an entry point was called. `caller` is the return address of the entry point's frame, which
/// must be on this thread's stack. A place in the program itself costs a few instructions.
inline const void* program_site(const void* caller) {
    if (known_site(caller).load(std::memory_order_relaxed) == caller) return caller;
    return program_site_slowly(caller);
}

/// Returns whether a site is a text such as "work.py:12 (step)" instead of an address in code.
bool is_label(const void* site);

}  // namespace starling::profile
