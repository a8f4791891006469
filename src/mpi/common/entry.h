// Wrappers that every generated entry point runs its implementation in.
#pragma once

#include <new>

#include "mpi.h"
#include "mpi/common/check.h"
#include "profile/collectives.h"

namespace starling::mpi {

/// Runs the implementation of MPI function `name`; std::bad_alloc becomes MPI_ERR_NO_MEM. out_of_memory() is called after the catch block,
/// not in it, so no call has to save a register for the handler.
template <class F>
inline int enter(const char* name, F&& body) {
    calling = name;
    try {
        return body();
    } catch (const std::bad_alloc&) {}
    return out_of_memory();
}

/// Runs a collective call that the profile watches (profile/collectives.h); `site` is the place in the program that called it.
template <class F>
[[gnu::noinline, gnu::cold]] int enter_watched(const char* name, const void* site, F body) {
    return enter(name, [&] { return profile::run_watched(site, body); });
}

/// Returns `error`; if it is an error, sets `*made` to the null handle, so that a program which continues does not use an undefined handle.
template <class Handle>
inline int or_null(int error, Handle* made, Handle null) {
    if (error && made) [[unlikely]]
        *made = null;
    return error;
}

/// Runs a function of the tool interface, which reports errors only by its result; std::bad_alloc becomes MPI_T_ERR_MEMORY.
template <class F>
inline int enter_tool(F&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) { return MPI_T_ERR_MEMORY; }
}

}  // namespace starling::mpi
