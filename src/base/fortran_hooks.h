// What entry points that stand outside of this library ask of it besides MPI's functions: those of Fortran, whose arrays may be sections
// with gaps (src/fortran/sections).
#pragma once

#include <sys/uio.h>

#include "mpi.h"

namespace starling {

/// Memory that stands in for the program's in a collective operation: what is called, with the library's lock held, and with what. No
/// function of MPI may be called by these.
struct Loan {
    void (*begin)(void* state);    ///< before each start of a persistent operation; what is non-blocking has begun
    void (*finish)(void* state);   ///< at each end
    void (*release)(void* state);  ///< the request is no more
    void* state;
};

}  // namespace starling

extern "C" {

/// The blocks of memory that `count` elements lie in, relative to where the buffer begins, from byte `from` of the packed data on: as many as
/// there are, `max` at most. How many that were. The type need not be committed.
int starling_blocks(MPI_Datatype type, MPI_Count count, MPI_Count from, iovec* blocks, int max);

/// From now on `request`, of a collective operation that has been started or is persistent, owns `loan`. False: it is of another kind.
bool starling_lend(MPI_Request request, const starling::Loan* loan);
}
