// Checks of the functions on files; errors are raised on the file's error handler.
#pragma once

#include "file/file.h"
#include "mpi/common/check.h"

namespace starling::mpi {

using file::File;

[[gnu::cold]] int raise_error(File& file, int error);
/// Reports an error on a file and returns the code for the caller; does nothing for MPI_SUCCESS.
inline int raise(File& file, int error) {
    if (error == MPI_SUCCESS) [[likely]]
        return error;
    return raise_error(file, error);
}
/// Reports an error that belongs to no open file, on the error handler of MPI_FILE_NULL.
[[gnu::cold]] int raise_without_file(int error);

/// Reports MPI_ERR_FILE, or that MPI is not running.
[[gnu::cold]] int bad_file(MPI_File handle);
[[gnu::cold]] int null_argument(File& file, const char* name);
/// Returns MPI_ERR_UNSUPPORTED_OPERATION with failure_text() if the file was opened with MPI_MODE_SEQUENTIAL.
int check_not_sequential(const File& file);

}  // namespace starling::mpi
