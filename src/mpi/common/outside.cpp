#include "base/fortran_hooks.h"

#include "datatype/datatype.h"

namespace starling {

extern "C" [[gnu::visibility("default")]] int starling_blocks(MPI_Datatype type, MPI_Count count, MPI_Count from, iovec* blocks,
                                                              int max) {
    const datatype::Datatype* known = datatype::from_handle(type);
    return known ? datatype::blocks(*known, count, nullptr, static_cast<uint64_t>(from), blocks, max) : 0;
}

}  // namespace starling
