// Accesses of windows: checks puts, gets and updates as programs describe them, and passes them to src/rma.
#pragma once

#include "datatype/op.h"
#include "window/window.h"

namespace starling::window {

/// The arguments of an access. Types are committed; `rank` is a rank of the window.
struct WindowOperation {
    rma::AccessOperation what = rma::AccessOperation::put;
    rma::LocalBuffer origin, result;
    int rank = 0;
    MPI_Aint disp = 0;
    MPI_Count count = 0;
    const datatype::Datatype* type = nullptr;
    const datatype::Op* op = nullptr;
    const void* compare = nullptr;
};

/// Starts an access. It is complete after the window's next flush of that rank, or at the end of the epoch. Returns an error class with
/// failure_text().
int run(Window& window, const WindowOperation& operation);
/// Starts an access with a request, which is `access`. It retains the types that it uses.
int start(Window& window, const WindowOperation& operation, rma::Access& access);
void release_types(const rma::Access& access);

}  // namespace starling::window
