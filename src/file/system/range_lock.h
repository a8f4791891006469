// Locks on ranges of a file against other open files, for MPI's atomic mode. They belong to the open file, not to the process (OFD locks of
// Linux), so two files that one process has opened exclude each other as well.
#pragma once

#include "file/system/open_file.h"

namespace starling::file {

/// Tries to lock a range for at most 100 ms. Returns EAGAIN if another holds it that long, and ENOLCK if the file system has no locks. The
/// kernel grants exclusive locks to writers and shared ones to readers only: a file open for one of both has that kind of lock always.
int lock_range(int descriptor, Extent range, bool exclusive);
int unlock_range(int descriptor, Extent range);

}  // namespace starling::file
