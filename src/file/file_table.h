// Creation and destruction of the objects behind MPI_File handles. Needs the library's lock.
#pragma once

#include "file/file.h"

namespace starling::file {

/// Creates a file object without a communicator or an open file, with the view of all bytes and the error handler of MPI_FILE_NULL.
File* make_file();
/// Destroys the object; closes what is still open without reporting errors.
void destroy(File& file);

}  // namespace starling::file
