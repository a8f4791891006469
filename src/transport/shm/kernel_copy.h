// One copy between two processes' memories, made by the kernel (process_vm_readv).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace starling::shm {

/// Reads `bytes` at `remote` of process `pid` into `blocks`, which hold exactly that many.
/// 0, or an errno value: EPERM (the kernel forbids it: copy through a ring), ESRCH (the process is gone).
int read_remote(pid_t pid, uint64_t remote, const iovec* blocks, size_t block_count, uint64_t bytes);

/// Writes `bytes` from `local` to `remote` of process `pid`. As read_remote.
int write_remote(pid_t pid, uint64_t remote, const void* local, uint64_t bytes);

/// Copies `count` blocks (at most 1024), in one call: each of this process's to (`write`) or from one of the other's that is as long; `bytes` in
/// all. As read_remote; where it fails, some may have been copied.
int copy_blocks(pid_t pid, bool write, const iovec* here, const iovec* there, size_t count, uint64_t bytes);

}  // namespace starling::shm
