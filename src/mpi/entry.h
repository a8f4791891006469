// What every generated entry point goes through.
#pragma once

#include <new>

#include "mpi.h"
#include "mpi/check.h"

namespace starling::mpi {

/// Runs the implementation of MPI function `name`; memory that is not there becomes MPI_ERR_NO_MEM.
template <class F>
inline int enter(const char* name, F&& body) {
    try {
        return body();
    } catch (const std::bad_alloc&) {
        return out_of_memory(name);
    }
}

}  // namespace starling::mpi
