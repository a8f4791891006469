// The system call membarrier, which the C library does not declare.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace starling {

inline long membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0); }

}  // namespace starling
