// For programs that call each collective operation in both of its forms.
#pragma once

#include "check.h"

inline bool non_blocking;

/// Starts the non-blocking form or calls the blocking one.
template <class Blocking, class Starting>
void call(Blocking blocking, Starting starting) {
    if (!non_blocking) {
        OK(blocking());
        return;
    }
    MPI_Request request;
    OK(starting(&request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
}
