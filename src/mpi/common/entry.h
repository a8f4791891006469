// What every generated entry point goes through.
#pragma once

#include <new>

#include "mpi.h"
#include "mpi/common/check.h"
#include "profile/collectives.h"

namespace starling::mpi {

/// Runs the implementation of MPI function `name`; memory that is not there becomes MPI_ERR_NO_MEM. That is reported behind the
/// handler, which so needs no register that every call would have to save.
template <class F>
inline int enter(const char* name, F&& body) {
    calling = name;
    try {
        return body();
    } catch (const std::bad_alloc&) {}
    return out_of_memory();
}

/// The same for a collective call that is watched (profile/collectives.h), from the place in the program that `site` says.
template <class F>
[[gnu::noinline, gnu::cold]] int enter_watched(const char* name, const void* site, F body) {
    return enter(name, [&] { return profile::run_watched(site, body); });
}

/// After an error that is returned, the handle that would have been made is the null handle, so that a program which
/// goes on has nothing to trip over.
template <class Handle>
inline int or_null(int error, Handle* made, Handle null) {
    if (error && made) [[unlikely]]
        *made = null;
    return error;
}

/// The same for a function of the tool interface, which reports errors by its result alone.
template <class F>
inline int enter_tool(F&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) { return MPI_T_ERR_MEMORY; }
}

}  // namespace starling::mpi
