// Accesses of windows: puts, gets and updates as programs describe them, checked and handed to the room rma.
#pragma once

#include "datatype/op.h"
#include "window/window.h"

namespace starling::window {

/// What a call asks for. Types are committed; `rank` is one of the window's.
struct Operation {
    rma::Operation what = rma::Operation::put;
    rma::LocalBuffer origin, result;
    int rank = 0;
    MPI_Aint disp = 0;
    MPI_Count count = 0;
    const datatype::Datatype* type = nullptr;
    const datatype::Op* op = nullptr;
    const void* compare = nullptr;
};

/// Begins it; it is over with the window's next flush of that rank, or end of the epoch. Gives an error class with failure_text().
int run(Window& window, const Operation& operation);
/// The same behind a request, which then is `access`. It has references of the types that it uses.
int start(Window& window, const Operation& operation, rma::Access& access);
void release_types(const rma::Access& access);

}  // namespace starling::window
