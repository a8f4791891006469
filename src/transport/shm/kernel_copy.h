// Copies between two processes' memories made by the kernel (process_vm_readv and process_vm_writev).
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace starling::shm {

/// Reads `bytes` at `remote` of process `pid` into `blocks`, whose lengths add up to `bytes`. Returns 0 or an errno value: EPERM (the
/// kernel forbids it: copy through a ring), ESRCH (the process has ended).
int read_remote(pid_t pid, uint64_t remote, const iovec* blocks, size_t block_count, uint64_t bytes);

/// Writes `bytes` from `local` to `remote` of process `pid`. Returns what read_remote() returns.
int write_remote(pid_t pid, uint64_t remote, const void* local, uint64_t bytes);

/// Copies `count` pairs of blocks (at most 1024), `bytes` in all, in one call. The blocks `here` are in this process; those `there` are in
/// the process `pid` and have the same lengths. `write`: from here to there. Returns what read_remote() returns; after an error, some
/// blocks may have been copied.
int copy_blocks(pid_t pid, bool write, const iovec* here, const iovec* there, size_t count, uint64_t bytes);

}  // namespace starling::shm
