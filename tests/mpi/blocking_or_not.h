// Helper of test programs that call each collective operation in its blocking and its non-blocking form.
#pragma once

#include "check.h"

inline bool non_blocking;

/// Calls the blocking form, or starts the non-blocking form and waits for it.
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
