// Numbers and types of system calls and socket options that are newer than the headers of the oldest supported systems (glibc 2.28,
// Linux 4.18). Where the kernel itself is older, these calls fail with ENOSYS, and these options with ENOPROTOOPT.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>

#include <cstdint>

#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

#ifndef TCP_RTO_MAX_MS
#define TCP_RTO_MAX_MS 44  // Linux 6.15: upper limit of the retransmission timeout, at least 1000 ms
#endif

#ifndef FUTEX_32
#define FUTEX_32 2
struct futex_waitv {
    uint64_t val, uaddr;
    uint32_t flags, reserved;
};
#endif
