// Space on the device for the first bytes of a file, also where the file system has no fallocate(2): NFS before 4.2, many FUSE file systems.
#pragma once

#include <cstdint>

namespace starling::file {

/// Makes sure that the first `bytes` bytes have space and that the file is at least as long; keeps its contents, and never makes it shorter.
/// Returns an errno value. Writes by other processes to the same part of the file must not be in progress (MPI 5.0 section 14.2.5).
int reserve_space(int descriptor, int64_t bytes);

/// As reserve_space(), but writes zeros to the file's holes and after its end instead of calling fallocate(2).
int fill_with_zeros(int descriptor, int64_t bytes);

}  // namespace starling::file
