// How much memory a container or a batch system's control groups leave this process.
#pragma once

#include <cstdint>

namespace starling {

/// Bytes that the process's control groups allow, its own and all above it; UINT64_MAX if none says. Whoever touches more is killed. Reads
/// files: for slow paths.
uint64_t memory_limit();

/// The same by other files than /proc/self/cgroup and those under /sys/fs/cgroup.
uint64_t memory_limit(const char* groups, const char* root);

}  // namespace starling
