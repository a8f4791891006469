// Addresses with a special meaning (MPI 5.0 section 2.5.4): variables of common blocks. A program that names such a variable may have a
// copy of it in its own memory. COMPAT_PLACES is the header with the variables of the interface.
#pragma once

namespace starling::fortran {

enum class Meaning {
    none,
    bottom,
    in_place,
    buffer_automatic,
    unweighted,
    weights_empty,
    errcodes_ignore,
    status_ignore,  // MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE
};

/// Returns the special meaning of address `place`, if it has one; takes a few comparisons.
Meaning meaning_of(const void* place);
bool is_argv_null(const char* argv);
bool is_argvs_null(const char* argvs);

}  // namespace starling::fortran

#include COMPAT_PLACES
