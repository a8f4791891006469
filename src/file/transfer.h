// Independent transfers: one process reads or writes its own part of a file, by as few system calls as its pieces allow.
#pragma once

#include "collective/core/task.h"
#include "file/file.h"

namespace starling::file {

/// Returns the error of writing data through a view whose filetype has none.
int check_stream(const FileTransfer& transfer);

/// Moves the data of `transfer` now; blocks. `moved`: bytes of the stream that were read or written (fewer at the file's end or after an
/// error). Returns an MPI error class with failure_text(). A write never touches bytes between its pieces.
int read_now(File& file, const FileTransfer& transfer, int64_t& moved);
int write_now(File& file, const FileTransfer& transfer, int64_t& moved);

/// The same as tasks, whose system calls the helper thread makes (file/helper.h). `moved` must last until the task is done.
collective::Task read_task(File& file, FileTransfer transfer, int64_t& moved);
collective::Task write_task(File& file, FileTransfer transfer, int64_t& moved);

}  // namespace starling::file
