#include "mpi/file/datarep.h"

#include <cstring>

#include "base/error.h"
#include "file/representation.h"
#include "mpi/file/file_check.h"

namespace starling::mpi {

namespace {

int add(const char* name, const file::ConversionFunctions& functions) {
    Lock lock;
    if (phase != LibraryPhase::running) return not_running();
    if (!name) return raise_without_file(null_pointer("datarep"));
    return raise_without_file(file::register_representation({name, strnlen(name, MPI_MAX_DATAREP_STRING)}, functions));
}

}  // namespace

int Register_datarep(const char* datarep, MPI_Datarep_conversion_function* read_conversion_fn,
                     MPI_Datarep_conversion_function* write_conversion_fn, MPI_Datarep_extent_function* dtype_file_extent_fn,
                     void* extra_state) {
    return add(
        datarep,
        {.read = read_conversion_fn, .write = write_conversion_fn, .extent = dtype_file_extent_fn, .extra_state = extra_state});
}

int Register_datarep_c(const char* datarep, MPI_Datarep_conversion_function_c* read_conversion_fn,
                       MPI_Datarep_conversion_function_c* write_conversion_fn,
                       MPI_Datarep_extent_function* dtype_file_extent_fn, void* extra_state) {
    return add(datarep, {.large_read = read_conversion_fn,
                         .large_write = write_conversion_fn,
                         .extent = dtype_file_extent_fn,
                         .extra_state = extra_state});
}

}  // namespace starling::mpi
