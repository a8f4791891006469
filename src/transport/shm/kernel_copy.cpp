#include "transport/shm/kernel_copy.h"

#include <cerrno>

#include "base/counters.h"
#include "base/process.h"

namespace starling::shm {

namespace {

void count(ssize_t bytes) {
    ++counters.copies;
    counters.bytes_copied += static_cast<uint64_t>(bytes);
}

/// A process as the kernel finds its memory: by its pid, or by a thread's id if its first thread has ended.
struct Owner {
    pid_t pid = 0, thread = pid;

    /// Returns 0 if a copy that failed with `error` may be repeated, otherwise the error to report.
    int judge(int error) {
        if (error == EINTR) return 0;
        if (error != ESRCH || process_ended(pid)) return error;
        const pid_t other = find_executing_thread(pid);
        // Without another id to try, the kernel cannot find the memory of a process that lives.
        if (other == 0 || other == thread) return EPERM;
        thread = other;
        return 0;
    }
};

}  // namespace

int read_remote(pid_t pid, uint64_t remote, const iovec* blocks, size_t block_count, uint64_t bytes) {
    constexpr size_t kMost = 1024;  // IOV_MAX
    iovec part{};                   // rest of a block that the kernel has read only in part
    size_t next = 0;
    Owner owner{pid};
    while (bytes > 0) {
        iovec list[kMost];
        size_t n = 0;
        uint64_t sum = 0;
        if (part.iov_len > 0) list[n++] = part, sum += part.iov_len;
        size_t ahead = next;
        while (n < kMost && ahead < block_count) list[n++] = blocks[ahead], sum += blocks[ahead++].iov_len;
        const iovec from{reinterpret_cast<void*>(remote), sum};
        const ssize_t got = process_vm_readv(owner.thread, list, n, &from, 1, 0);
        if (got < 0) {
            if (const int error = owner.judge(errno)) return error;
            continue;
        }
        if (got == 0) return EFAULT;
        count(got);
        remote += static_cast<uint64_t>(got);
        bytes -= static_cast<uint64_t>(got);
        uint64_t left = static_cast<uint64_t>(got);
        size_t i = 0;
        while (i < n && left >= list[i].iov_len) left -= list[i++].iov_len;
        const size_t had_part = part.iov_len > 0 ? 1 : 0;
        if (i < n) {
            part = {static_cast<std::byte*>(list[i].iov_base) + left, list[i].iov_len - left};
            next += i + 1 - had_part;
        } else {
            part = {};
            next += i - had_part;
        }
    }
    return 0;
}

int write_remote(pid_t pid, uint64_t remote, const void* local, uint64_t bytes) {
    auto* from = static_cast<std::byte*>(const_cast<void*>(local));
    Owner owner{pid};
    while (bytes > 0) {
        const iovec here{from, bytes};
        const iovec there{reinterpret_cast<void*>(remote), bytes};
        const ssize_t put = process_vm_writev(owner.thread, &here, 1, &there, 1, 0);
        if (put < 0) {
            if (const int error = owner.judge(errno)) return error;
            continue;
        }
        if (put == 0) return EFAULT;
        count(put);
        from += put;
        remote += static_cast<uint64_t>(put);
        bytes -= static_cast<uint64_t>(put);
    }
    return 0;
}

int copy_blocks(pid_t pid, bool write, const iovec* here, const iovec* there, size_t blocks, uint64_t bytes) {
    Owner owner{pid};
    ssize_t copied;
    while ((copied = (write ? process_vm_writev : process_vm_readv)(owner.thread, here, blocks, there, blocks, 0)) < 0)
        if (const int error = owner.judge(errno)) return error;
    count(copied);
    return static_cast<uint64_t>(copied) == bytes ? 0 : EFAULT;
}

}  // namespace starling::shm
