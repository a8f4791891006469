#include "mpi/check.h"

#include "base/error.h"

namespace starling::mpi {

int raise(comm::Comm*, int error_class) {
    return error_class;
}

int unsupported(const char* name) {
    return raise(
        nullptr,
        fail(MPI_ERR_UNSUPPORTED_OPERATION,
             "%s is not built into Starling yet; `starling info --missing` lists what is not", name));
}

int out_of_memory(const char* name) {
    return raise(nullptr, fail(MPI_ERR_NO_MEM, "%s: out of memory", name));
}

}  // namespace starling::mpi
