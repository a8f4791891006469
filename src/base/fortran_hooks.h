// Functions that this library exports, besides MPI's, for the Fortran entry points, whose arrays may be sections with gaps
// (src/fortran/sections).
#pragma once

#include <sys/uio.h>

#include "mpi.h"

namespace starling {

/// Memory that replaces the program's buffer in a collective operation, as callbacks and their argument. They are called with the library's
/// lock held and must not call MPI.
struct SubstituteBuffer {
    void (*begin)(void* state);    ///< called before each start of a persistent operation; not for a non-blocking one
    void (*finish)(void* state);   ///< called at the end of each operation
    void (*release)(void* state);  ///< called when the request has been freed
    void* state;
};

}  // namespace starling

extern "C" {

/// Writes the memory blocks of `count` elements to `blocks`, at most `max`, as offsets from the start of the buffer, beginning with byte
/// `from` of the packed data. Returns the number of blocks written. The type need not be committed.
int starling_blocks(MPI_Datatype type, MPI_Count count, MPI_Count from, iovec* blocks, int max);

/// Makes `request` the owner of `loan`, which is released with it. Returns false if `request` is not a started or persistent collective
/// operation.
bool starling_lend(MPI_Request request, const starling::SubstituteBuffer* loan);
}
