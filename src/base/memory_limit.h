// The memory limit that a container or a batch system's control groups set for this process.
#pragma once

#include <cstdint>

namespace starling {

/// Returns the smallest limit, in bytes, of the process's control group and all groups above it; UINT64_MAX if there is none. The kernel
/// kills a process that exceeds it. Reads files: for slow paths.
uint64_t memory_limit();

/// Returns the limit as memory_limit() does, from the file `groups` instead of /proc/self/cgroup and from `root` instead of /sys/fs/cgroup.
uint64_t memory_limit(const char* groups, const char* root);

}  // namespace starling
